//! Memory pools and stream-ordered allocation.

use std::ffi::c_void;

use crate::driver::Handle;
use crate::export::api;

api! {
    /// Allocates from the device's pool.
    current fn cudaMallocAsync(driver, out: *mut Handle, bytes: usize, stream: Handle) =
        driver.cuMemAllocAsync(out, bytes, stream);

    /// Allocates from a pool.
    current fn cudaMallocFromPoolAsync(
        driver, out: *mut Handle, bytes: usize, pool: Handle, stream: Handle
    ) = driver.cuMemAllocFromPoolAsync(out, bytes, pool, stream);

    /// Frees in the order of a stream.
    current fn cudaFreeAsync(driver, address: Handle, stream: Handle) =
        driver.cuMemFreeAsync(address, stream);

    /// The pool that a device has by itself.
    loaded fn cudaDeviceGetDefaultMemPool(driver, out: *mut Handle, device: i32) =
        driver.cuDeviceGetDefaultMemPool(out, device);

    /// The pool that a device allocates from.
    loaded fn cudaDeviceGetMemPool(driver, out: *mut Handle, device: i32) =
        driver.cuDeviceGetMemPool(out, device);

    /// Chooses it.
    loaded fn cudaDeviceSetMemPool(driver, device: i32, pool: Handle) =
        driver.cuDeviceSetMemPool(device, pool);

    /// Creates a pool; the driver's structure is the same.
    loaded fn cudaMemPoolCreate(driver, out: *mut Handle, properties: *const c_void) =
        driver.cuMemPoolCreate(out, properties);

    /// Destroys a pool.
    loaded fn cudaMemPoolDestroy(driver, pool: Handle) = driver.cuMemPoolDestroy(pool);

    /// Gives back what a pool does not use.
    loaded fn cudaMemPoolTrimTo(driver, pool: Handle, keep_bytes: usize) =
        driver.cuMemPoolTrimTo(pool, keep_bytes);

    /// Sets an attribute of a pool.
    loaded fn cudaMemPoolSetAttribute(driver, pool: Handle, attribute: i32, value: *mut c_void) =
        driver.cuMemPoolSetAttribute(pool, attribute, value);

    /// An attribute of a pool.
    loaded fn cudaMemPoolGetAttribute(driver, pool: Handle, attribute: i32, value: *mut c_void) =
        driver.cuMemPoolGetAttribute(pool, attribute, value);

    /// Lets other devices use a pool; the driver's structure is the same.
    loaded fn cudaMemPoolSetAccess(driver, pool: Handle, wishes: *const c_void, count: usize) =
        driver.cuMemPoolSetAccess(pool, wishes, count);
}
