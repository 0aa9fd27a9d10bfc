//! The simulated driver as a program sees it: through its exported functions.
//!
//! Each test runs in a process of its own, with its own environment.

// The methods bear the driver's names.
#![allow(non_snake_case)]

mod contexts;
mod device;
mod graphs;
mod ipc;
mod kernels;
mod library;
mod machine;
mod memory;
mod notes;
mod planes;
mod pools;
mod proc_address;
mod settings;
mod sparse;
mod streams;
mod threads;
mod truth;
mod visible;
mod vmm;
