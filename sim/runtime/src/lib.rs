//! A simulated CUDA runtime, which programs take for `libcudart.so.12` and
//! `libcudart.so.13`.
//!
//! It has the public interface alone, and nothing of its own but what a runtime
//! has: the device that a thread chose, its last error, and the kernels that
//! programs registered. All else is the driver's, found as every runtime finds
//! it: `libcuda.so.1` is opened, and its functions are looked up by name and
//! version, so that a tool between the two sees the same two layers.
//!
//! Each function is a row of an `api!` list of its family's file. Three packages
//! are made of this source (`build.rs`): a shared library for each version, and
//! an archive of version 13 (`archive/`). A version exports its own names and no
//! others; `twelve.rs` and `thirteen.rs` have what differs between them. What is
//! public and not simulated answers `cudaErrorNotSupported`, and is named once
//! in the log (`GPUMEM_SIM_LOG=FILE`, or stderr when `GPUMEM_SIM_TRACE` is set).

// The functions bear the runtime's names.
#![allow(non_snake_case)]

mod copy;
mod device;
mod driver;
mod error;
mod event;
mod export;
mod graph;
mod ipc;
mod kernel;
mod log;
mod memory;
mod per_thread;
mod pool;
mod properties;
mod refused;
mod registry;
mod stream;
#[cfg(not(twelve))]
mod thirteen;
#[cfg(twelve)]
mod twelve;
