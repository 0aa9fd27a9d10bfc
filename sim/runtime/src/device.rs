//! Versions, devices, and the driver's functions for programs that ask.

use std::ffi::{c_char, c_void};

use crate::driver::device_count;
use crate::error::{INVALID_DEVICE, INVALID_VALUE, Outcome};
use crate::export::api;

/// The version that this runtime states, as `1000 * major + 10 * minor`.
const VERSION: i32 = if cfg!(twelve) { 12_080 } else { 13_000 };

/// Answers a look-up; what is not there is an answer, too.
unsafe fn answer(found: (*mut c_void, i32), out: *mut *mut c_void, status: *mut i32) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe {
        out.write(found.0);
        if !status.is_null() {
            status.write(found.1);
        }
    }
    Ok(())
}

/// Writes an answer; NULL is an error.
unsafe fn set(out: *mut i32, value: i32) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe { out.write(value) };
    Ok(())
}

api! {
    /// The driver's version.
    loaded fn cudaDriverGetVersion(driver, out: *mut i32) = driver.cuDriverGetVersion(out);

    /// The runtime's version.
    free fn cudaRuntimeGetVersion(_, out: *mut i32) = set(out, VERSION);

    /// How many devices there are: none is an error.
    free fn cudaGetDeviceCount(_, out: *mut i32) = match device_count() {
        Ok(count) => set(out, count),
        Err(code) => set(out, 0).and(Err(code)),
    };

    /// The thread's device. It wakes no context.
    loaded fn cudaGetDevice(driver, out: *mut i32) = set(out, driver.device());

    /// Chooses the thread's device, and wakes its context.
    loaded fn cudaSetDevice(driver, device: i32) = driver.choose(device);

    /// Wakes a device's context.
    loaded fn cudaInitDevice(driver, device: i32, _device_flags: u32, _flags: u32) =
        driver.context(device).map(drop);

    /// One attribute of a device: the driver's numbers.
    loaded fn cudaDeviceGetAttribute(driver, out: *mut i32, attribute: i32, device: i32) =
        driver.cuDeviceGetAttribute(out, attribute, device);

    /// A device's PCI address.
    loaded fn cudaDeviceGetPCIBusId(driver, out: *mut c_char, length: i32, device: i32) =
        driver.cuDeviceGetPCIBusId(out, length, device);

    /// The device at a PCI address.
    loaded fn cudaDeviceGetByPCIBusId(driver, out: *mut i32, address: *const c_char) =
        driver.cuDeviceGetByPCIBusId(out, address);

    /// Whether a device can reach another.
    loaded fn cudaDeviceCanAccessPeer(driver, out: *mut i32, device: i32, peer: i32) =
        driver.cuDeviceCanAccessPeer(out, device, peer);

    /// How a device reaches another.
    loaded fn cudaDeviceGetP2PAttribute(
        driver, out: *mut i32, attribute: i32, device: i32, peer: i32
    ) = driver.cuDeviceGetP2PAttribute(out, attribute, device, peer);

    /// Peers see each other's memory anyway.
    free fn cudaDeviceEnablePeerAccess(_, peer: i32, _flags: u32) = known(peer);

    /// They go on to do so.
    free fn cudaDeviceDisablePeerAccess(_, peer: i32) = known(peer);

    /// Priorities that a stream can have.
    current fn cudaDeviceGetStreamPriorityRange(driver, least: *mut i32, greatest: *mut i32) =
        driver.cuCtxGetStreamPriorityRange(least, greatest);

    /// Waits for the device.
    current fn cudaDeviceSynchronize(driver) = driver.cuCtxSynchronize();

    /// Ends the device's context and all that is in it.
    loaded fn cudaDeviceReset(driver) = driver.reset();

    /// A limit of the device.
    current fn cudaDeviceGetLimit(driver, out: *mut usize, limit: i32) =
        driver.cuCtxGetLimit(out, limit);

    /// Sets a limit of the device.
    current fn cudaDeviceSetLimit(driver, limit: i32, value: usize) =
        driver.cuCtxSetLimit(limit, value);

    /// Flags say how a thread waits, which none does.
    free fn cudaSetDeviceFlags(_, _flags: u32) = Ok(());

    /// None were set.
    free fn cudaGetDeviceFlags(_, out: *mut i32) = set(out, 0);

    /// A function of the driver, at the runtime's version.
    loaded fn cudaGetDriverEntryPoint(
        driver, name: *const c_char, out: *mut *mut c_void, flags: u64, status: *mut i32
    ) = answer(driver.look_up_for_program(name, VERSION, flags), out, status);

    /// A function of the driver, at a version.
    loaded fn cudaGetDriverEntryPointByVersion(
        driver, name: *const c_char, out: *mut *mut c_void, version: u32, flags: u64,
        status: *mut i32,
    ) = answer(
        driver.look_up_for_program(name, i32::try_from(version).map_err(|_| INVALID_VALUE)?, flags),
        out,
        status,
    );

    /// A profiler may look now; there is none.
    current fn cudaProfilerStart(driver) = driver.cuProfilerStart();

    /// It may not any more.
    current fn cudaProfilerStop(driver) = driver.cuProfilerStop();
}

/// Whether there is such a device.
fn known(device: i32) -> Outcome {
    let known = (0..device_count()?).contains(&device);
    if known { Ok(()) } else { Err(INVALID_DEVICE) }
}
