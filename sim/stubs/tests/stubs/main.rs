//! The stub libraries in real programs.

mod folder;
mod nccl;
mod preload;
mod wanted;
