//! Memory of the device and of the host.

use std::ffi::c_void;

use crate::driver::{Driver, Handle};
use crate::error::{INVALID_VALUE, Outcome};
use crate::export::api;

/// `cudaPointerAttributes`, as far as both versions have it: 13 has reserved
/// words behind it.
#[repr(C)]
pub(crate) struct PointerAttributes {
    /// 0: not known, 1: host, 2: device, 3: managed.
    kind: i32,
    device: i32,
    device_address: Handle,
    host_address: Handle,
}

unsafe fn attributes(driver: &Driver, out: *mut PointerAttributes, address: Handle) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let (mut kind, mut on_device, mut on_host, mut managed, mut device) =
        (0_u32, 0_u64, 0_u64, 0_u32, 0);
    let outs: [*mut c_void; 5] = [
        (&raw mut kind).cast(),
        (&raw mut on_device).cast(),
        (&raw mut on_host).cast(),
        (&raw mut managed).cast(),
        (&raw mut device).cast(),
    ];
    let wanted = [2, 3, 4, 8, 9];
    // SAFETY: five attributes and room for each.
    unsafe { driver.cuPointerGetAttributes(5, wanted.as_ptr(), outs.as_ptr(), address)? };
    let kind = if managed & 0xff != 0 { 3 } else { kind as i32 };
    let answer = PointerAttributes {
        kind,
        device,
        device_address: on_device,
        host_address: if kind == 0 { address } else { on_host },
    };
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe { out.write(answer) };
    Ok(())
}

/// No bytes are at NULL.
unsafe fn allocate(driver: &Driver, out: *mut Handle, bytes: usize) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe {
        if bytes == 0 {
            out.write(0);
            return Ok(());
        }
        driver.cuMemAlloc(out, bytes)
    }
}

api! {
    /// Allocates device memory.
    current fn cudaMalloc(driver, out: *mut Handle, bytes: usize) = allocate(driver, out, bytes);

    /// Frees device memory.
    current fn cudaFree(driver, address: Handle) = driver.cuMemFree(address);

    /// Allocates rows.
    current fn cudaMallocPitch(
        driver, out: *mut Handle, pitch: *mut usize, width: usize, height: usize
    ) = driver.cuMemAllocPitch(out, pitch, width, height, 16);

    /// Allocates managed memory.
    current fn cudaMallocManaged(driver, out: *mut Handle, bytes: usize, flags: u32) =
        driver.cuMemAllocManaged(out, bytes, flags);

    /// Allocates pinned memory.
    current fn cudaMallocHost(driver, out: *mut Handle, bytes: usize) =
        driver.cuMemHostAlloc(out, bytes, 0);

    /// Allocates pinned memory with flags.
    current fn cudaHostAlloc(driver, out: *mut Handle, bytes: usize, flags: u32) =
        driver.cuMemHostAlloc(out, bytes, flags);

    /// Frees pinned memory.
    current fn cudaFreeHost(driver, address: Handle) = driver.cuMemFreeHost(address);

    /// Pins the program's memory.
    current fn cudaHostRegister(driver, address: Handle, bytes: usize, flags: u32) =
        driver.cuMemHostRegister(address, bytes, flags);

    /// Unpins it.
    current fn cudaHostUnregister(driver, address: Handle) = driver.cuMemHostUnregister(address);

    /// The device's address of pinned memory.
    current fn cudaHostGetDevicePointer(driver, out: *mut Handle, address: Handle, flags: u32) =
        driver.cuMemHostGetDevicePointer(out, address, flags);

    /// Flags of pinned memory.
    current fn cudaHostGetFlags(driver, out: *mut u32, address: Handle) =
        driver.cuMemHostGetFlags(out, address);

    /// Free and total memory of the device.
    current fn cudaMemGetInfo(driver, free: *mut usize, total: *mut usize) =
        driver.cuMemGetInfo(free, total);

    /// What an address is, also of memory that the driver does not know.
    current fn cudaPointerGetAttributes(driver, out: *mut PointerAttributes, address: Handle) =
        attributes(driver, out, address);
}
