//! Pinned host memory: `cuMemHostAlloc`, `cuMemAllocHost`, `cuMemFreeHost`, `cuMemHostRegister`, `cuMemHostUnregister`.
//!
//! Host bytes, never device bytes. The CUDA runtimes reach `cudaMallocHost` through `cuMemHostAlloc`.

use core::ffi::{c_uint, c_void};

use gpumem_wire::{DeviceOrdinal, Kind, Object};

use super::table::Row;
use super::{allocating, context, destroying, read_out};

/// `cuMemHostAlloc`. Of no bytes it gives null, which is nothing.
pub(super) unsafe fn alloc(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    out: *mut *mut c_void,
    bytesize: usize,
    flags: c_uint,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let address = unsafe { read_out(out) };
        let Some(address) = address.filter(|address| !address.is_null()) else {
            return;
        };
        let (_, context) = context::current();
        let words = [address as u64, bytesize as u64, context, flags.into()];
        call.with_stack(Kind::HostAlloc, DeviceOrdinal::HOST, words);
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::PinnedHost, bytesize), born) }
}

/// `cuMemAllocHost_v2`.
pub(super) unsafe fn alloc_plain(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    out: *mut *mut c_void,
    bytesize: usize,
) -> u32 {
    // SAFETY: as for the function called, which takes the same call.
    unsafe { alloc(row, real, out, bytesize, 0) }
}

/// `cuMemFreeHost`.
pub(super) unsafe fn free(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    address: *mut c_void,
) -> u32 {
    // SAFETY: as for the function called, which takes the same call.
    unsafe { ends(row, real, Kind::HostFree, address) }
}

/// `cuMemHostRegister_v2`.
pub(super) unsafe fn register(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    address: *mut c_void,
    bytesize: usize,
    flags: c_uint,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        let (_, context) = context::current();
        let words = [address as u64, bytesize as u64, context, flags.into()];
        call.with_stack(Kind::HostRegister, DeviceOrdinal::HOST, words);
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::RegisteredHost, bytesize), born) }
}

/// `cuMemHostUnregister`.
pub(super) unsafe fn unregister(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    address: *mut c_void,
) -> u32 {
    // SAFETY: as for the function called, which takes the same call.
    unsafe { ends(row, real, Kind::HostUnregister, address) }
}

unsafe fn ends(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    kind: Kind,
    address: *mut c_void,
) -> u32 {
    if address.is_null() {
        return real();
    }
    let begin = |call: &super::Call<'_>| {
        call.without_stack(kind, DeviceOrdinal::HOST, [address as u64, 0, 0, 0])
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}
