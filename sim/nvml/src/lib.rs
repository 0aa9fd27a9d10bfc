//! A simulated management library, which programs take for
//! `libnvidia-ml.so.1`.
//!
//! Its devices and their memory are those of the simulated driver in the same
//! process, which it loads if the program has not: it has no ledger of its own.
//! It tells of all devices of the machine, whatever `CUDA_VISIBLE_DEVICES` says,
//! which is for CUDA alone.
//! Of other processes it knows what the driver knows: those that share a
//! machine's file (`GPUMEM_SIM_MACHINE`) and have taken memory. PyTorch needs it
//! for expandable segments, where it calls it through pointers that it does not
//! check.
//!
//! Memory, processes, names and versions are told; sensors and links answer
//! `NVML_ERROR_NOT_SUPPORTED`.

// The functions bear the library's names.
#![allow(non_snake_case)]

mod abi;
mod device;
mod driver;
mod fabric;
mod library;
mod memory;
mod refused;
