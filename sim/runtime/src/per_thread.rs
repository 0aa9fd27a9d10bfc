//! Functions as programs call them that were compiled for a default stream per
//! thread: there no stream is the thread's own one.

use std::ffi::{c_char, c_void};

use crate::driver::Handle;
use crate::error::INVALID_VALUE;
use crate::export::{api, exported};
use crate::kernel::{LaunchConfig, Shape};

/// `cudaStreamPerThread`.
const PER_THREAD: Handle = 2;
/// `cudaEnablePerThreadDefaultStream`, of look-ups.
const LOOK_UP_PER_THREAD: u64 = 2;

/// The stream that such a program means.
pub(crate) fn own(stream: Handle) -> Handle {
    if stream == 0 { PER_THREAD } else { stream }
}

/// Makes functions that call another one with the stream that is meant. A row:
/// name, the other function, parameters before the stream, those behind it.
macro_rules! per_thread {
    ($(
        $name:ident = $module:ident::$function:ident
            ($($before:ident: $before_ty:ty),*; $($after:ident: $after_ty:ty),*);
    )*) => {
        exported! {$(
            /// The other function, of the thread's own stream.
            fn $name($($before: $before_ty,)* stream: Handle $(, $after: $after_ty)*) -> i32 {
                // SAFETY: the parameters are the caller's, who vouches for them.
                unsafe { crate::$module::$function($($before,)* own(stream) $(, $after)*) }
            }
        )*}
    };
}

per_thread! {
    cudaEventRecord_ptsz = event::cudaEventRecord(event: Handle;);
    cudaEventRecordWithFlags_ptsz = event::cudaEventRecordWithFlags(event: Handle; flags: u32);
    cudaFreeAsync_ptsz = pool::cudaFreeAsync(address: Handle;);
    cudaGraphLaunch_ptsz = graph::cudaGraphLaunch(executable: Handle;);
    cudaGraphUpload_ptsz = graph::cudaGraphUpload(executable: Handle;);
    cudaLaunchCooperativeKernel_ptsz = kernel::cudaLaunchCooperativeKernel(
        stand_in: *const c_void, grid: Shape, block: Shape, arguments: *mut *mut c_void,
        shared_bytes: usize;
    );
    cudaLaunchHostFunc_ptsz = stream::cudaLaunchHostFunc(; function: Handle, argument: Handle);
    cudaLaunchKernel_ptsz = kernel::cudaLaunchKernel(
        stand_in: *const c_void, grid: Shape, block: Shape, arguments: *mut *mut c_void,
        shared_bytes: usize;
    );
    __cudaLaunchKernel_ptsz = kernel::__cudaLaunchKernel(
        kernel: Handle, grid: Shape, block: Shape, arguments: *mut *mut c_void,
        shared_bytes: usize;
    );
    cudaMallocAsync_ptsz = pool::cudaMallocAsync(out: *mut Handle, bytes: usize;);
    cudaMallocFromPoolAsync_ptsz =
        pool::cudaMallocFromPoolAsync(out: *mut Handle, bytes: usize, pool: Handle;);
    cudaMemcpy2DAsync_ptsz = copy::cudaMemcpy2DAsync(
        to: Handle, to_pitch: usize, from: Handle, from_pitch: usize, row_bytes: usize,
        rows: usize, kind: i32;
    );
    cudaMemcpyAsync_ptsz =
        copy::cudaMemcpyAsync(to: Handle, from: Handle, bytes: usize, kind: i32;);
    cudaMemset2DAsync_ptsz = copy::cudaMemset2DAsync(
        to: Handle, pitch: usize, value: i32, row_bytes: usize, rows: usize;
    );
    cudaMemsetAsync_ptsz = copy::cudaMemsetAsync(to: Handle, value: i32, bytes: usize;);
    cudaStreamAddCallback_ptsz =
        stream::cudaStreamAddCallback(; function: Handle, argument: Handle, flags: u32);
    cudaStreamBeginCapture_ptsz = graph::cudaStreamBeginCapture(; mode: i32);
    cudaStreamBeginCaptureToGraph_ptsz = graph::cudaStreamBeginCaptureToGraph(;
        graph: Handle, dependencies: Handle, edges: Handle, count: usize, mode: i32
    );
    cudaStreamEndCapture_ptsz = graph::cudaStreamEndCapture(; out: *mut Handle);
    cudaStreamGetFlags_ptsz = stream::cudaStreamGetFlags(; out: *mut u32);
    cudaStreamGetId_ptsz = stream::cudaStreamGetId(; out: *mut u64);
    cudaStreamGetPriority_ptsz = stream::cudaStreamGetPriority(; out: *mut i32);
    cudaStreamIsCapturing_ptsz = graph::cudaStreamIsCapturing(; out: *mut i32);
    cudaStreamQuery_ptsz = stream::cudaStreamQuery(;);
    cudaStreamSynchronize_ptsz = stream::cudaStreamSynchronize(;);
    cudaStreamWaitEvent_ptsz = stream::cudaStreamWaitEvent(; event: Handle, flags: u32);
}

api! {
    /// Launches a kernel as a structure says.
    free fn cudaLaunchKernelExC_ptsz(
        _, config: *const LaunchConfig, stand_in: *const c_void, arguments: *mut *mut c_void
    ) = {
        let config = config.as_ref().ok_or(INVALID_VALUE)?.on(own);
        done(crate::kernel::cudaLaunchKernelExC(&config, stand_in, arguments))
    };

    /// Copies, and waits for the thread's own stream.
    current fn cudaMemcpy_ptds(driver, to: Handle, from: Handle, bytes: usize, kind: i32) = {
        done(crate::copy::cudaMemcpyAsync(to, from, bytes, kind, PER_THREAD))?;
        driver.cuStreamSynchronize(PER_THREAD)
    };

    /// Copies rows, and waits for the thread's own stream.
    current fn cudaMemcpy2D_ptds(
        driver, to: Handle, to_pitch: usize, from: Handle, from_pitch: usize,
        row_bytes: usize, rows: usize, kind: i32,
    ) = {
        let copied = crate::copy::cudaMemcpy2DAsync(
            to, to_pitch, from, from_pitch, row_bytes, rows, kind, PER_THREAD
        );
        done(copied)?;
        driver.cuStreamSynchronize(PER_THREAD)
    };

    /// Fills on the thread's own stream.
    free fn cudaMemset_ptds(_, to: Handle, value: i32, bytes: usize) =
        done(crate::copy::cudaMemsetAsync(to, value, bytes, PER_THREAD));

    /// A function of the driver, for such programs.
    free fn cudaGetDriverEntryPoint_ptsz(
        _, name: *const c_char, out: *mut *mut c_void, flags: u64, status: *mut i32
    ) = done(crate::device::cudaGetDriverEntryPoint(name, out, flags | LOOK_UP_PER_THREAD, status));

    /// A function of the driver at a version, for such programs.
    free fn cudaGetDriverEntryPointByVersion_ptsz(
        _, name: *const c_char, out: *mut *mut c_void, version: u32, flags: u64,
        status: *mut i32,
    ) = done(crate::device::cudaGetDriverEntryPointByVersion(
        name, out, version, flags | LOOK_UP_PER_THREAD, status
    ));
}

/// What another function answered.
fn done(code: i32) -> crate::error::Outcome {
    if code == 0 { Ok(()) } else { Err(code) }
}
