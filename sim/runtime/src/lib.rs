//! A simulated CUDA runtime, which programs take for `libcudart.so.12` and
//! `libcudart.so.13`.
//!
//! It has the public interface alone, and nothing of its own but what a runtime
//! has: the device that a thread chose, its last error, and the kernels that
//! programs registered. All else is the driver's, found as every runtime finds
//! it: `libcuda.so.1` is opened, and its functions are looked up by name and
//! version, so that a tool between the two sees the same two layers.
//!
//! Each function is a row of an `api!` list of its family's file, which exports
//! it under both versions. What differs between 12 and 13 has a name of its own
//! in 12 (`cudaGetDeviceProperties_v2`), but for the version itself. What is public and not simulated
//! answers `cudaErrorNotSupported`, and says so once on stderr when
//! `GPUMEM_SIM_TRACE` is set.

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
mod memory;
mod pool;
mod properties;
mod refused;
mod registry;
mod stream;
