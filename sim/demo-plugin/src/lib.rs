//! The demo's data loader: a library that calls the CUDA driver by symbols
//! bound at link time, as many do.
//!
//! It names no library for them: the program loads the driver for all first,
//! and this plugin after it.

#![allow(non_snake_case)] // The driver's names.

use std::ffi::{c_int, c_uint, c_void};

unsafe extern "C" {
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> c_int;
    fn cuMemFree_v2(address: u64) -> c_int;
    fn cuMemHostAlloc(address: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_int;
    fn cuMemFreeHost(address: *mut c_void) -> c_int;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, bytes: usize) -> c_int;
}

/// Loads a batch of `bytes` bytes to the device and gives it back: 0, or the
/// driver's error. A CUDA context must be current.
#[unsafe(no_mangle)]
pub extern "C" fn gpumem_demo_load_batch(bytes: usize) -> c_int {
    load_batch(bytes)
}

#[inline(never)]
fn load_batch(bytes: usize) -> c_int {
    let mut staging = std::ptr::null_mut();
    // SAFETY: the answer goes to a local variable.
    let status = unsafe { cuMemHostAlloc(&mut staging, bytes, 0) };
    if status != 0 {
        return status;
    }
    // SAFETY: the driver has just given `bytes` writable bytes.
    unsafe { staging.cast::<u8>().write_bytes(1, bytes) };
    let sent = send(staging, bytes);
    // SAFETY: from `cuMemHostAlloc`, and not used any more.
    let freed = unsafe { cuMemFreeHost(staging) };
    if sent != 0 { sent } else { freed }
}

#[inline(never)]
fn send(staging: *const c_void, bytes: usize) -> c_int {
    let mut batch = 0;
    // SAFETY: the answer goes to a local variable.
    let status = unsafe { cuMemAlloc_v2(&mut batch, bytes) };
    if status != 0 {
        return status;
    }
    // SAFETY: both sides are `bytes` long and live.
    let copied = unsafe { cuMemcpyHtoD_v2(batch, staging, bytes) };
    // SAFETY: from `cuMemAlloc_v2`, and not used any more.
    let freed = unsafe { cuMemFree_v2(batch) };
    if copied != 0 { copied } else { freed }
}
