//! What version 13 has otherwise than 12: functions that kept their name and
//! changed their parameters, and those that 12 has not.

use crate::driver::Handle;
use crate::export::api;
use crate::per_thread::own;
use crate::properties::{Layout, fill};
use crate::refused::refused;

api! {
    /// All of a device. It wakes no context.
    loaded fn cudaGetDeviceProperties(driver, out: *mut u8, device: i32) =
        fill(driver, out, Layout::Thirteen, device);

    /// What a stream's capture is, with edges.
    current fn cudaStreamGetCaptureInfo(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, edges: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(stream, status, id, graph, dependencies, edges, count);

    /// The same of the thread's own stream.
    current fn cudaStreamGetCaptureInfo_ptsz(
        driver, stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle,
        dependencies: *mut Handle, edges: *mut Handle, count: *mut usize,
    ) = driver.cuStreamGetCaptureInfo(own(stream), status, id, graph, dependencies, edges, count);
}

refused! {
    __cudaGetProcAddress
    cudaDevResourceGenerateDesc
    cudaDevSmResourceSplit
    cudaDevSmResourceSplitByCount
    cudaDeviceGetDevResource
    cudaDeviceGetExecutionCtx
    cudaDeviceGetHostAtomicCapabilities
    cudaDeviceGetP2PAtomicCapabilities
    cudaExecutionCtxDestroy
    cudaExecutionCtxGetDevResource
    cudaExecutionCtxGetDevice
    cudaExecutionCtxGetId
    cudaExecutionCtxRecordEvent
    cudaExecutionCtxStreamCreate
    cudaExecutionCtxSynchronize
    cudaExecutionCtxWaitEvent
    cudaFuncGetParamCount
    cudaGraphConditionalHandleCreate_v2
    cudaGraphExecGetId
    cudaGraphGetId
    cudaGraphNodeGetContainingGraph
    cudaGraphNodeGetLocalId
    cudaGraphNodeGetParams
    cudaGraphNodeGetToolsId
    cudaGreenCtxCreate
    cudaLaunchHostFunc_v2
    cudaLaunchHostFunc_v2_ptsz
    cudaLogsCurrent
    cudaLogsDumpToFile
    cudaLogsDumpToMemory
    cudaLogsRegisterCallback
    cudaLogsUnregisterCallback
    cudaMemDiscardAndPrefetchBatchAsync
    cudaMemDiscardAndPrefetchBatchAsync_ptsz
    cudaMemDiscardBatchAsync
    cudaMemDiscardBatchAsync_ptsz
    cudaMemGetDefaultMemPool
    cudaMemGetLocationInfo
    cudaMemGetMemPool
    cudaMemPrefetchBatchAsync
    cudaMemPrefetchBatchAsync_ptsz
    cudaMemSetMemPool
    cudaMemcpy3DWithAttributesAsync
    cudaMemcpy3DWithAttributesAsync_ptsz
    cudaMemcpyWithAttributesAsync
    cudaMemcpyWithAttributesAsync_ptsz
    cudaStreamBeginRecaptureToGraph
    cudaStreamBeginRecaptureToGraph_ptsz
    cudaStreamGetDevResource
    cudaStreamGetDevResource_ptsz
    cudaSubgridCreate
    cudaSubgridWorkerGridCreate
    cudaSubgridWorksetCreate
}
