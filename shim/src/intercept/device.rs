//! Device and managed memory: `cuMemAlloc`, `cuMemAllocPitch`, `cuMemAllocManaged`, `cuMemFree`.

use core::ffi::c_uint;

use cudarc::driver::sys::CUdeviceptr;
use gpumem_wire::{DeviceOrdinal, Kind, Object};

use super::table::Row;
use super::{allocating, context, destroying, read_out};

/// `cuMemAlloc_v2`.
pub(super) unsafe fn alloc(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    bytesize: usize,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(address) = (unsafe { read_out(dptr) }) else {
            return;
        };
        let (device, context) = context::current();
        call.with_stack(
            Kind::DeviceAlloc,
            device,
            [address, bytesize as u64, context, bytesize as u64],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::DeviceAllocation, bytesize), born) }
}

/// `cuMemAllocPitch_v2`: the bytes taken are pitch times height, and the pitch is known only afterwards.
pub(super) unsafe fn alloc_pitch(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    pitch: *mut usize,
    width: usize,
    height: usize,
    _element: c_uint,
) -> u32 {
    let asked = width.saturating_mul(height);
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameters, written by the real call.
        let Some((address, pitch)) = (unsafe { read_out(dptr).zip(read_out(pitch)) }) else {
            return;
        };
        let (device, context) = context::current();
        let taken = pitch.saturating_mul(height) as u64;
        call.with_stack(
            Kind::DeviceAlloc,
            device,
            [address, taken, context, asked as u64],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::DeviceAllocation, asked), born) }
}

/// `cuMemAllocManaged`.
pub(super) unsafe fn alloc_managed(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    bytesize: usize,
    flags: c_uint,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(address) = (unsafe { read_out(dptr) }) else {
            return;
        };
        let (device, context) = context::current();
        call.with_stack(
            Kind::ManagedAlloc,
            device,
            [address, bytesize as u64, context, flags.into()],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::ManagedAllocation, bytesize), born) }
}

/// `cuMemFree_v2`, which frees memory of every kind that has an address. Freeing null is legal and frees nothing.
pub(super) unsafe fn free(row: &'static Row, real: impl FnOnce() -> u32, dptr: CUdeviceptr) -> u32 {
    if dptr == 0 {
        return real();
    }
    // SAFETY: the real call with the program's own arguments.
    unsafe {
        destroying(row, real, |call| {
            call.without_stack(Kind::Free, DeviceOrdinal::UNKNOWN, [dptr, 0, 0, 0])
        })
    }
}
