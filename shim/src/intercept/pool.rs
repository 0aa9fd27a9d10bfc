//! Stream-ordered memory and its pools: `cuMemAllocAsync`, `cuMemFreeAsync`, `cuMemPool*`.

use cudarc::driver::sys::{CUdeviceptr, CUmemPoolProps, CUmemoryPool, CUstream};
use gpumem_wire::{DeviceOrdinal, Kind, Object};

use super::table::Row;
use super::{allocating, context, creating, destroying, read_out, vmm};

/// `cuMemAllocAsync`: from the current pool of the current device.
pub(super) unsafe fn alloc(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    bytesize: usize,
    stream: CUstream,
) -> u32 {
    // SAFETY: as for the function called, which takes the same call.
    unsafe { alloc_from(row, real, dptr, bytesize, core::ptr::null_mut(), stream) }
}

/// `cuMemAllocFromPoolAsync`; a null pool stands for the device's current one.
pub(super) unsafe fn alloc_from(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    bytesize: usize,
    pool: CUmemoryPool,
    stream: CUstream,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(address) = (unsafe { read_out(dptr) }) else {
            return;
        };
        let words = [address, bytesize as u64, pool as u64, stream as u64];
        call.with_stack(Kind::PoolAlloc, context::current_device(), words);
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::PoolBlock, bytesize), born) }
}

/// `cuMemFreeAsync`, which may also free memory of `cuMemAlloc`.
pub(super) unsafe fn free(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: CUdeviceptr,
    stream: CUstream,
) -> u32 {
    if dptr == 0 {
        return real();
    }
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::Free,
            DeviceOrdinal::UNKNOWN,
            [dptr, stream as u64, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}

/// `cuMemPoolCreate`.
pub(super) unsafe fn create(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    pool: *mut CUmemoryPool,
    properties: *const CUmemPoolProps,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own parameters; the real call accepted them and wrote the pool.
        unsafe {
            let Some(pool) = read_out(pool) else { return };
            let device = if properties.is_null() {
                DeviceOrdinal::UNKNOWN
            } else {
                vmm::device_of(&raw const (*properties).location)
            };
            call.with_stack(Kind::PoolCreate, device, [pool as u64, 0, 0, 0]);
        }
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}

/// `cuMemPoolDestroy`. Blocks that are alive stay alive; the pool's memory goes with the last of them.
pub(super) unsafe fn destroy(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    pool: CUmemoryPool,
) -> u32 {
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::PoolDestroy,
            DeviceOrdinal::UNKNOWN,
            [pool as u64, 0, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}

/// `cuMemPoolTrimTo`.
pub(super) unsafe fn trim(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    pool: CUmemoryPool,
    keep: usize,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::PoolTrim,
            DeviceOrdinal::UNKNOWN,
            [pool as u64, keep as u64, 0, 0],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}
