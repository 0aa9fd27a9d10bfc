//! Virtual memory management: physical memory, address ranges, and mappings of one into the other.

use core::ffi::{c_int, c_ulonglong, c_void};

use cudarc::driver::sys::{
    CUdeviceptr, CUmemAllocationProp, CUmemGenericAllocationHandle, CUmemLocation,
};
use gpumem_wire::{DeviceOrdinal, Kind, Object};

use super::table::Row;
use super::{allocating, creating, destroying, read_out};

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
const LOCATION_DEVICE: u32 = 1;

/// The device of a location; host and NUMA locations are host memory.
///
/// # Safety
/// `location` points to a location that the driver accepted.
pub(super) unsafe fn device_of(location: *const CUmemLocation) -> DeviceOrdinal {
    // SAFETY: the caller's. The type is read as a number: a driver may know locations that no enum of ours does.
    let (kind, id) = unsafe {
        (
            (&raw const (*location).type_).cast::<u32>().read(),
            (*location).id,
        )
    };
    device_of_parts(kind, id)
}

fn device_of_parts(kind: u32, id: c_int) -> DeviceOrdinal {
    match kind {
        LOCATION_DEVICE => i16::try_from(id).map_or(DeviceOrdinal::UNKNOWN, DeviceOrdinal),
        _ => DeviceOrdinal::HOST,
    }
}

/// `cuMemCreate`: physical memory where its properties say, which need not be the current device.
pub(super) unsafe fn create(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    handle: *mut CUmemGenericAllocationHandle,
    size: usize,
    properties: *const CUmemAllocationProp,
    flags: c_ulonglong,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own parameters; the real call accepted them and wrote the handle.
        unsafe {
            let Some(handle) = read_out(handle) else {
                return;
            };
            if properties.is_null() {
                return;
            }
            let location = &raw const (*properties).location;
            let kind = (&raw const (*location).type_).cast::<u32>().read();
            let words = [handle, size as u64, kind.into(), flags];
            call.with_stack(Kind::PhysicalCreate, device_of(location), words);
        }
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { allocating(row, real, (Object::Physical, size), born) }
}

/// `cuMemRelease`: gives up one reference; mappings keep the memory alive.
pub(super) unsafe fn release(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    handle: CUmemGenericAllocationHandle,
) -> u32 {
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::PhysicalRelease,
            DeviceOrdinal::UNKNOWN,
            [handle, 0, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}

/// `cuMemRetainAllocationHandle`: one reference more, found by an address.
pub(super) unsafe fn retain(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    handle: *mut CUmemGenericAllocationHandle,
    address: *mut c_void,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(handle) = (unsafe { read_out(handle) }) else {
            return;
        };
        call.with_stack(
            Kind::PhysicalRetain,
            DeviceOrdinal::UNKNOWN,
            [handle, address as u64, 0, 0],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}

/// `cuMemAddressReserve`: addresses, no memory.
pub(super) unsafe fn reserve(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: *mut CUdeviceptr,
    size: usize,
    alignment: usize,
    _wish: CUdeviceptr,
    _flags: c_ulonglong,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(address) = (unsafe { read_out(dptr) }) else {
            return;
        };
        let words = [address, size as u64, alignment as u64, 0];
        call.with_stack(Kind::Reserve, DeviceOrdinal::UNKNOWN, words);
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}

/// `cuMemAddressFree`.
pub(super) unsafe fn unreserve(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: CUdeviceptr,
    size: usize,
) -> u32 {
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::Unreserve,
            DeviceOrdinal::UNKNOWN,
            [dptr, size as u64, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}

/// `cuMemMap`.
pub(super) unsafe fn map(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    _flags: c_ulonglong,
) -> u32 {
    let born = |call: &super::Call<'_>| {
        let words = [dptr, size as u64, handle, offset as u64];
        call.with_stack(Kind::Map, DeviceOrdinal::UNKNOWN, words);
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}

/// `cuMemUnmap`: may cover several mappings at once.
pub(super) unsafe fn unmap(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    dptr: CUdeviceptr,
    size: usize,
) -> u32 {
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::Unmap,
            DeviceOrdinal::UNKNOWN,
            [dptr, size as u64, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}
