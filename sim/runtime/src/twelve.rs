//! What version 12 has otherwise than 13: functions under the name without a
//! number as they were before 12, which is what a program gets that looks a
//! name up itself; the newer ones under numbers, to which 12's headers lead; and
//! those that 13 dropped.

use std::ptr::null_mut;

use crate::driver::{Driver, Handle};
use crate::error::Outcome;
use crate::export::api;
use crate::per_thread::own;
use crate::properties::{Layout, fill};
use crate::refused::refused;

api! {
    /// All of a device, in the structure of version 11. It wakes no context.
    loaded fn cudaGetDeviceProperties(driver, out: *mut u8, device: i32) =
        fill(driver, out, Layout::Eleven, device);

    /// All of a device. It wakes no context.
    loaded fn cudaGetDeviceProperties_v2(driver, out: *mut u8, device: i32) =
        fill(driver, out, Layout::Twelve, device);

    /// Whether a stream is captured, and in which capture.
    current fn cudaStreamGetCaptureInfo(
        driver, stream: Handle, status: *mut i32, id: *mut u64
    ) = capture(driver, stream, status, id);

    /// What a stream's capture is.
    current fn cudaStreamGetCaptureInfo_v2(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, null_mut(), count);

    /// What a stream's capture is, with edges.
    current fn cudaStreamGetCaptureInfo_v3(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, edges: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);

    /// The first of the three, of the thread's own stream.
    current fn cudaStreamGetCaptureInfo_ptsz(
        driver, stream: Handle, status: *mut i32, id: *mut u64
    ) = capture(driver, own(stream), status, id);

    /// The second.
    current fn cudaStreamGetCaptureInfo_v2_ptsz(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(
        own(stream), status, id, graph, dependencies, null_mut(), count
    );

    /// The third.
    current fn cudaStreamGetCaptureInfo_v3_ptsz(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, edges: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(own(stream), status, id, graph, dependencies, edges, count);

    /// Milliseconds between two events.
    current fn cudaEventElapsedTime_v2(driver, out: *mut f32, start: Handle, end: Handle) =
        driver.cuEventElapsedTime(out, start, end);

    /// Waits for the device: the oldest name of that.
    current fn cudaThreadSynchronize(driver) = driver.cuCtxSynchronize();

    /// Ends the device's context: the oldest name of that.
    loaded fn cudaThreadExit(driver) = driver.reset();
}

/// Only status and number of a capture.
unsafe fn capture(driver: &Driver, stream: Handle, status: *mut i32, id: *mut u64) -> Outcome {
    let none = null_mut();
    // SAFETY: the caller vouches for what it gives; the rest is not asked for.
    unsafe { driver.cuStreamGetCaptureInfo(stream, status, id, none, none, none, null_mut()) }
}

refused! {
    cudaGraphAddDependencies_v2
    cudaGraphAddNode_v2
    cudaGraphGetEdges_v2
    cudaGraphNodeGetDependencies_v2
    cudaGraphNodeGetDependentNodes_v2
    cudaGraphRemoveDependencies_v2
    cudaLaunchCooperativeKernelMultiDevice
    cudaMemAdvise_v2
    cudaMemPrefetchAsync_v2
    cudaMemPrefetchAsync_v2_ptsz
    cudaSetDoubleForDevice
    cudaSetDoubleForHost
    cudaSignalExternalSemaphoresAsync_v2
    cudaSignalExternalSemaphoresAsync_v2_ptsz
    cudaStreamUpdateCaptureDependencies_v2
    cudaStreamUpdateCaptureDependencies_v2_ptsz
    cudaThreadGetCacheConfig
    cudaThreadGetLimit
    cudaThreadSetCacheConfig
    cudaThreadSetLimit
    cudaWaitExternalSemaphoresAsync_v2
    cudaWaitExternalSemaphoresAsync_v2_ptsz
}
