//! Copies and fills.

use crate::driver::{Driver, Handle};
use crate::error::{INVALID_VALUE, Outcome};
use crate::export::api;

/// `CUDA_MEMCPY2D`, the driver's.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Planes {
    from: Plane,
    to: Plane,
    row_bytes: usize,
    rows: usize,
}

#[repr(C)]
#[derive(Default)]
struct Plane {
    x_bytes: usize,
    y: usize,
    kind: u32,
    host: Handle,
    device: Handle,
    array: Handle,
    pitch_bytes: usize,
}

/// `CU_MEMORYTYPE_UNIFIED`: by address, wherever that is.
const ANYWHERE: u32 = 4;

/// `cudaMemcpyKind`: the two that the driver has functions for.
const HOST_TO_DEVICE: i32 = 1;
const DEVICE_TO_HOST: i32 = 2;

impl Planes {
    fn new(
        (to, to_pitch): (Handle, usize),
        (from, from_pitch): (Handle, usize),
        row_bytes: usize,
        rows: usize,
    ) -> Self {
        let plane = |device, pitch_bytes| Plane {
            kind: ANYWHERE,
            device,
            pitch_bytes,
            ..Plane::default()
        };
        Self {
            from: plane(from, from_pitch),
            to: plane(to, to_pitch),
            row_bytes,
            rows,
        }
    }
}

/// On a stream, or at once without one.
unsafe fn copy(
    driver: &Driver,
    (to, from, bytes): (Handle, Handle, usize),
    kind: i32,
    stream: Option<Handle>,
) -> Outcome {
    if !(0..=4).contains(&kind) {
        return Err(INVALID_VALUE);
    }
    if bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller vouches for both ranges.
    unsafe {
        match (kind, stream) {
            (HOST_TO_DEVICE, None) => driver.cuMemcpyHtoD(to, from, bytes),
            (HOST_TO_DEVICE, Some(stream)) => driver.cuMemcpyHtoDAsync(to, from, bytes, stream),
            (DEVICE_TO_HOST, None) => driver.cuMemcpyDtoH(to, from, bytes),
            (DEVICE_TO_HOST, Some(stream)) => driver.cuMemcpyDtoHAsync(to, from, bytes, stream),
            // Between two places of the host there is nothing for the driver.
            (0, _) => {
                std::ptr::copy(from as *const u8, to as *mut u8, bytes);
                Ok(())
            }
            (_, None) => driver.cuMemcpy(to, from, bytes),
            (_, Some(stream)) => driver.cuMemcpyAsync(to, from, bytes, stream),
        }
    }
}

unsafe fn fill(
    driver: &Driver,
    to: Handle,
    value: i32,
    bytes: usize,
    stream: Option<Handle>,
) -> Outcome {
    // SAFETY: the caller vouches for the range. A fill has the value's low byte.
    unsafe {
        match stream {
            None => driver.cuMemsetD8(to, value as u8, bytes),
            Some(stream) => driver.cuMemsetD8Async(to, value as u8, bytes, stream),
        }
    }
}

api! {
    /// Copies.
    current fn cudaMemcpy(driver, to: Handle, from: Handle, bytes: usize, kind: i32) =
        copy(driver, (to, from, bytes), kind, None);

    /// Copies on a stream.
    current fn cudaMemcpyAsync(
        driver, to: Handle, from: Handle, bytes: usize, kind: i32, stream: Handle
    ) = copy(driver, (to, from, bytes), kind, Some(stream));

    /// Copies between devices.
    current fn cudaMemcpyPeer(
        driver, to: Handle, to_device: i32, from: Handle, from_device: i32, bytes: usize
    ) = driver.cuMemcpyPeer(
        to, driver.context(to_device)?, from, driver.context(from_device)?, bytes
    );

    /// Copies between devices, on a stream.
    current fn cudaMemcpyPeerAsync(
        driver, to: Handle, to_device: i32, from: Handle, from_device: i32, bytes: usize,
        stream: Handle,
    ) = driver.cuMemcpyPeerAsync(
        to, driver.context(to_device)?, from, driver.context(from_device)?, bytes, stream
    );

    /// Copies rows.
    current fn cudaMemcpy2D(
        driver, to: Handle, to_pitch: usize, from: Handle, from_pitch: usize,
        row_bytes: usize, rows: usize, _kind: i32,
    ) = driver.cuMemcpy2D(&Planes::new((to, to_pitch), (from, from_pitch), row_bytes, rows));

    /// Copies rows on a stream.
    current fn cudaMemcpy2DAsync(
        driver, to: Handle, to_pitch: usize, from: Handle, from_pitch: usize,
        row_bytes: usize, rows: usize, _kind: i32, stream: Handle,
    ) = driver.cuMemcpy2DAsync(
        &Planes::new((to, to_pitch), (from, from_pitch), row_bytes, rows), stream
    );

    /// Fills with bytes.
    current fn cudaMemset(driver, to: Handle, value: i32, bytes: usize) =
        fill(driver, to, value, bytes, None);

    /// Fills with bytes on a stream.
    current fn cudaMemsetAsync(driver, to: Handle, value: i32, bytes: usize, stream: Handle) =
        fill(driver, to, value, bytes, Some(stream));

    /// Fills rows on a stream.
    current fn cudaMemset2DAsync(
        driver, to: Handle, pitch: usize, value: i32, row_bytes: usize, rows: usize,
        stream: Handle,
    ) = driver.cuMemsetD2D8Async(to, pitch, value as u8, row_bytes, rows, stream);
}
