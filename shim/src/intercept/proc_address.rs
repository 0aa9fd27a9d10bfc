//! `cuGetProcAddress`: how CUDA's runtime, and so nearly every library, gets the driver's functions.
//!
//! The driver answers first, with the caller's own arguments. If its answer is the address of a function that we watch, ours
//! takes its place. This covers the look-up of `cuGetProcAddress` itself, whose two signatures have rows of their own: the
//! runtime asks for both and uses the answers.

use core::ffi::{c_char, c_int, c_void};

use cudarc::driver::sys::cuuint64_t;

use super::table::{self, Row};
use super::{SUCCESS, read_out};
use crate::guard::Watch;

/// `cuGetProcAddress` of CUDA 11.3: four arguments.
pub(super) unsafe fn look_up_v1(
    _row: &'static Row,
    real: impl FnOnce() -> u32,
    _symbol: *const c_char,
    pfn: *mut *mut c_void,
    _version: c_int,
    _flags: cuuint64_t,
) -> u32 {
    // SAFETY: the program's own out-parameter.
    unsafe { routed(real, pfn) }
}

/// `cuGetProcAddress_v2`: five arguments, of which the last may be null.
pub(super) unsafe fn look_up_v2(
    _row: &'static Row,
    real: impl FnOnce() -> u32,
    _symbol: *const c_char,
    pfn: *mut *mut c_void,
    _version: c_int,
    _flags: cuuint64_t,
    _status: *mut c_int,
) -> u32 {
    // SAFETY: the program's own out-parameter.
    unsafe { routed(real, pfn) }
}

unsafe fn routed(real: impl FnOnce() -> u32, pfn: *mut *mut c_void) -> u32 {
    let status = real();
    if status != SUCCESS {
        return status;
    }
    // Looking up does not wake the process: it may never use the device.
    if let Some(watch) = Watch::enter() {
        watch.own(|| {
            // SAFETY: the out-parameter that the real call has written, or null.
            if let Some(hook) = unsafe { read_out(pfn) }.and_then(table::hook_of) {
                // SAFETY: as above; not null, since it was read.
                unsafe { pfn.write_unaligned(hook) };
            }
        });
    }
    status
}
