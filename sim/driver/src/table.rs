//! Every function: name, version, variant, home and symbol.
//!
//! The exports and `cuGetProcAddress` come from this table. Names, versions and
//! variants are those of the public headers (`cuda.h`, `cudaTypedefs.h`): the
//! version is the first that has this signature under the name. The home is
//! the module that implements the symbol; `refused` means that none does.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::entry::Tally;
use crate::stream::DefaultStream;

/// The address of an exported function.
#[derive(Clone, Copy)]
pub(crate) struct Function(*const ());

// SAFETY: the address of code, which no thread changes.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// As a program gets it.
    pub(crate) fn address(self) -> u64 {
        self.0 as u64
    }
}

/// A row of the table.
pub(crate) struct Row {
    name: &'static str,
    version: i32,
    variant: Variant,
    pub(crate) function: Function,
    tally: &'static Tally,
}

/// For which default stream a function is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Variant {
    /// The legacy one; or the function knows no stream.
    Legacy,
    /// The thread's own.
    PerThread,
}

/// Why a look-up finds nothing.
#[derive(Debug)]
pub(crate) enum Missing {
    /// No function has the name.
    Name,
    /// One has, from a later version on.
    Version,
}

/// The function that has `name` at `version`. Only a function that never had a
/// variant for threads' own streams stands for both: else a version from before
/// that variant is not sufficient, as with driver 580.
pub(crate) fn find(
    name: &str,
    version: i32,
    default: DefaultStream,
) -> Result<&'static Row, Missing> {
    static BY_NAME: LazyLock<BTreeMap<&'static str, Vec<&'static Row>>> = LazyLock::new(|| {
        let mut by_name = BTreeMap::<_, Vec<_>>::new();
        for row in ROWS {
            by_name.entry(row.name).or_default().push(row);
        }
        by_name
    });
    let rows = BY_NAME.get(name).ok_or(Missing::Name)?;
    let has_own = rows.iter().any(|row| row.variant == Variant::PerThread);
    let variant = match default {
        DefaultStream::PerThread if has_own => Variant::PerThread,
        _ => Variant::Legacy,
    };
    rows.iter()
        .filter(|row| row.variant == variant && row.version <= version)
        .max_by_key(|row| row.version)
        .copied()
        .ok_or(Missing::Version)
}

/// The tally of each function.
pub(crate) fn tallies() -> impl Iterator<Item = &'static Tally> {
    ROWS.iter().map(|row| row.tally)
}

macro_rules! rows {
    ($($name:literal $version:literal $variant:ident $home:ident $symbol:ident;)*) => {
        static ROWS: &[Row] = &[$(
            Row {
                name: $name,
                version: $version,
                variant: Variant::$variant,
                function: Function(crate::$home::$symbol as *const ()),
                tally: &crate::$home::$symbol::TALLY,
            },
        )*];
    };
}

/// Hands all rows to a macro.
macro_rules! each_function {
    ($do:ident) => {
        $do! {
            "cuArray3DCreate" 2000 Legacy refused cuArray3DCreate;
            "cuArray3DCreate" 3020 Legacy refused cuArray3DCreate_v2;
            "cuArray3DGetDescriptor" 2000 Legacy refused cuArray3DGetDescriptor;
            "cuArray3DGetDescriptor" 3020 Legacy refused cuArray3DGetDescriptor_v2;
            "cuArrayCreate" 2000 Legacy refused cuArrayCreate;
            "cuArrayCreate" 3020 Legacy refused cuArrayCreate_v2;
            "cuArrayDestroy" 2000 Legacy refused cuArrayDestroy;
            "cuArrayGetDescriptor" 2000 Legacy refused cuArrayGetDescriptor;
            "cuArrayGetDescriptor" 3020 Legacy refused cuArrayGetDescriptor_v2;
            "cuArrayGetMemoryRequirements" 11060 Legacy refused cuArrayGetMemoryRequirements;
            "cuArrayGetPlane" 11020 Legacy refused cuArrayGetPlane;
            "cuArrayGetSparseProperties" 11010 Legacy refused cuArrayGetSparseProperties;
            "cuCheckpointProcessCheckpoint" 12080 Legacy refused cuCheckpointProcessCheckpoint;
            "cuCheckpointProcessGetRestoreThreadId" 12080 Legacy refused cuCheckpointProcessGetRestoreThreadId;
            "cuCheckpointProcessGetState" 12080 Legacy refused cuCheckpointProcessGetState;
            "cuCheckpointProcessLock" 12080 Legacy refused cuCheckpointProcessLock;
            "cuCheckpointProcessRestore" 12080 Legacy refused cuCheckpointProcessRestore;
            "cuCheckpointProcessUnlock" 12080 Legacy refused cuCheckpointProcessUnlock;
            "cuCoredumpDeregisterCompleteCallback" 13020 Legacy refused cuCoredumpDeregisterCompleteCallback;
            "cuCoredumpDeregisterStartCallback" 13020 Legacy refused cuCoredumpDeregisterStartCallback;
            "cuCoredumpGetAttribute" 12010 Legacy refused cuCoredumpGetAttribute;
            "cuCoredumpGetAttributeGlobal" 12010 Legacy refused cuCoredumpGetAttributeGlobal;
            "cuCoredumpRegisterCompleteCallback" 13020 Legacy refused cuCoredumpRegisterCompleteCallback;
            "cuCoredumpRegisterStartCallback" 13020 Legacy refused cuCoredumpRegisterStartCallback;
            "cuCoredumpSetAttribute" 12010 Legacy refused cuCoredumpSetAttribute;
            "cuCoredumpSetAttributeGlobal" 12010 Legacy refused cuCoredumpSetAttributeGlobal;
            "cuCtxAttach" 2000 Legacy refused cuCtxAttach;
            "cuCtxCreate" 2000 Legacy refused cuCtxCreate;
            "cuCtxCreate" 3020 Legacy context cuCtxCreate_v2;
            "cuCtxCreate" 11040 Legacy context cuCtxCreate_v3;
            "cuCtxCreate" 12050 Legacy context cuCtxCreate_v4;
            "cuCtxDestroy" 2000 Legacy refused cuCtxDestroy;
            "cuCtxDestroy" 4000 Legacy context cuCtxDestroy_v2;
            "cuCtxDetach" 2000 Legacy refused cuCtxDetach;
            "cuCtxDisablePeerAccess" 4000 Legacy context cuCtxDisablePeerAccess;
            "cuCtxEnablePeerAccess" 4000 Legacy context cuCtxEnablePeerAccess;
            "cuCtxFromGreenCtx" 12040 Legacy refused cuCtxFromGreenCtx;
            "cuCtxGetApiVersion" 3020 Legacy context cuCtxGetApiVersion;
            "cuCtxGetCacheConfig" 3020 Legacy refused cuCtxGetCacheConfig;
            "cuCtxGetCurrent" 4000 Legacy context cuCtxGetCurrent;
            "cuCtxGetDevResource" 12040 Legacy refused cuCtxGetDevResource;
            "cuCtxGetDevice" 2000 Legacy context cuCtxGetDevice;
            "cuCtxGetDevice" 13000 Legacy refused cuCtxGetDevice_v2;
            "cuCtxGetExecAffinity" 11040 Legacy refused cuCtxGetExecAffinity;
            "cuCtxGetFlags" 7000 Legacy context cuCtxGetFlags;
            "cuCtxGetId" 12000 Legacy context cuCtxGetId;
            "cuCtxGetLimit" 3010 Legacy context cuCtxGetLimit;
            "cuCtxGetSharedMemConfig" 4020 Legacy refused cuCtxGetSharedMemConfig;
            "cuCtxGetStreamPriorityRange" 5050 Legacy context cuCtxGetStreamPriorityRange;
            "cuCtxPopCurrent" 2000 Legacy refused cuCtxPopCurrent;
            "cuCtxPopCurrent" 4000 Legacy context cuCtxPopCurrent_v2;
            "cuCtxPushCurrent" 2000 Legacy refused cuCtxPushCurrent;
            "cuCtxPushCurrent" 4000 Legacy context cuCtxPushCurrent_v2;
            "cuCtxRecordEvent" 12050 Legacy refused cuCtxRecordEvent;
            "cuCtxResetPersistingL2Cache" 11000 Legacy refused cuCtxResetPersistingL2Cache;
            "cuCtxSetCacheConfig" 3020 Legacy refused cuCtxSetCacheConfig;
            "cuCtxSetCurrent" 4000 Legacy context cuCtxSetCurrent;
            "cuCtxSetFlags" 12010 Legacy refused cuCtxSetFlags;
            "cuCtxSetLimit" 3010 Legacy context cuCtxSetLimit;
            "cuCtxSetSharedMemConfig" 4020 Legacy refused cuCtxSetSharedMemConfig;
            "cuCtxSynchronize" 2000 Legacy context cuCtxSynchronize;
            "cuCtxSynchronize" 13000 Legacy refused cuCtxSynchronize_v2;
            "cuCtxWaitEvent" 12050 Legacy refused cuCtxWaitEvent;
            "cuDestroyExternalMemory" 10000 Legacy refused cuDestroyExternalMemory;
            "cuDestroyExternalSemaphore" 10000 Legacy refused cuDestroyExternalSemaphore;
            "cuDevResourceGenerateDesc" 12040 Legacy refused cuDevResourceGenerateDesc;
            "cuDevSmResourceSplit" 13010 Legacy refused cuDevSmResourceSplit;
            "cuDevSmResourceSplitByCount" 12040 Legacy refused cuDevSmResourceSplitByCount;
            "cuDeviceCanAccessPeer" 4000 Legacy device cuDeviceCanAccessPeer;
            "cuDeviceComputeCapability" 2000 Legacy device cuDeviceComputeCapability;
            "cuDeviceGet" 2000 Legacy device cuDeviceGet;
            "cuDeviceGetAttribute" 2000 Legacy device cuDeviceGetAttribute;
            "cuDeviceGetByPCIBusId" 4010 Legacy device cuDeviceGetByPCIBusId;
            "cuDeviceGetCliqueCount" 13040 Legacy refused cuDeviceGetCliqueCount;
            "cuDeviceGetCliqueInfo" 13040 Legacy refused cuDeviceGetCliqueInfo;
            "cuDeviceGetCount" 2000 Legacy device cuDeviceGetCount;
            "cuDeviceGetDefaultMemPool" 11020 Legacy pool cuDeviceGetDefaultMemPool;
            "cuDeviceGetDevResource" 12040 Legacy refused cuDeviceGetDevResource;
            "cuDeviceGetExecAffinitySupport" 11040 Legacy refused cuDeviceGetExecAffinitySupport;
            "cuDeviceGetFabricClusterUuid" 13040 Legacy refused cuDeviceGetFabricClusterUuid;
            "cuDeviceGetGraphMemAttribute" 11040 Legacy graph cuDeviceGetGraphMemAttribute;
            "cuDeviceGetHostAtomicCapabilities" 13000 Legacy refused cuDeviceGetHostAtomicCapabilities;
            "cuDeviceGetLuid" 10000 Legacy refused cuDeviceGetLuid;
            "cuDeviceGetMemPool" 11020 Legacy pool cuDeviceGetMemPool;
            "cuDeviceGetName" 2000 Legacy device cuDeviceGetName;
            "cuDeviceGetNvSciSyncAttributes" 10020 Legacy refused cuDeviceGetNvSciSyncAttributes;
            "cuDeviceGetP2PAtomicCapabilities" 13000 Legacy refused cuDeviceGetP2PAtomicCapabilities;
            "cuDeviceGetP2PAttribute" 8000 Legacy device cuDeviceGetP2PAttribute;
            "cuDeviceGetPCIBusId" 4010 Legacy device cuDeviceGetPCIBusId;
            "cuDeviceGetProperties" 2000 Legacy refused cuDeviceGetProperties;
            "cuDeviceGetTexture1DLinearMaxWidth" 11010 Legacy refused cuDeviceGetTexture1DLinearMaxWidth;
            "cuDeviceGetUuid" 9020 Legacy device cuDeviceGetUuid;
            "cuDeviceGetUuid" 11040 Legacy device cuDeviceGetUuid_v2;
            "cuDeviceGraphMemTrim" 11040 Legacy graph cuDeviceGraphMemTrim;
            "cuDevicePrimaryCtxGetState" 7000 Legacy context cuDevicePrimaryCtxGetState;
            "cuDevicePrimaryCtxRelease" 7000 Legacy context cuDevicePrimaryCtxRelease;
            "cuDevicePrimaryCtxRelease" 11000 Legacy context cuDevicePrimaryCtxRelease_v2;
            "cuDevicePrimaryCtxReset" 7000 Legacy context cuDevicePrimaryCtxReset;
            "cuDevicePrimaryCtxReset" 11000 Legacy context cuDevicePrimaryCtxReset_v2;
            "cuDevicePrimaryCtxRetain" 7000 Legacy context cuDevicePrimaryCtxRetain;
            "cuDevicePrimaryCtxSetFlags" 7000 Legacy context cuDevicePrimaryCtxSetFlags;
            "cuDevicePrimaryCtxSetFlags" 11000 Legacy context cuDevicePrimaryCtxSetFlags_v2;
            "cuDeviceRegisterAsyncNotification" 12040 Legacy refused cuDeviceRegisterAsyncNotification;
            "cuDeviceSetGraphMemAttribute" 11040 Legacy graph cuDeviceSetGraphMemAttribute;
            "cuDeviceSetMemPool" 11020 Legacy pool cuDeviceSetMemPool;
            "cuDeviceTotalMem" 2000 Legacy refused cuDeviceTotalMem;
            "cuDeviceTotalMem" 3020 Legacy device cuDeviceTotalMem_v2;
            "cuDeviceUnregisterAsyncNotification" 12040 Legacy refused cuDeviceUnregisterAsyncNotification;
            "cuDriverGetVersion" 2020 Legacy device cuDriverGetVersion;
            "cuEGLStreamConsumerAcquireFrame" 7000 Legacy refused cuEGLStreamConsumerAcquireFrame;
            "cuEGLStreamConsumerConnect" 7000 Legacy refused cuEGLStreamConsumerConnect;
            "cuEGLStreamConsumerConnectWithFlags" 8000 Legacy refused cuEGLStreamConsumerConnectWithFlags;
            "cuEGLStreamConsumerDisconnect" 7000 Legacy refused cuEGLStreamConsumerDisconnect;
            "cuEGLStreamConsumerReleaseFrame" 7000 Legacy refused cuEGLStreamConsumerReleaseFrame;
            "cuEGLStreamProducerConnect" 7000 Legacy refused cuEGLStreamProducerConnect;
            "cuEGLStreamProducerDisconnect" 7000 Legacy refused cuEGLStreamProducerDisconnect;
            "cuEGLStreamProducerPresentFrame" 7000 Legacy refused cuEGLStreamProducerPresentFrame;
            "cuEGLStreamProducerReturnFrame" 7000 Legacy refused cuEGLStreamProducerReturnFrame;
            "cuEventCreate" 2000 Legacy event cuEventCreate;
            "cuEventCreateFromEGLSync" 9000 Legacy refused cuEventCreateFromEGLSync;
            "cuEventDestroy" 2000 Legacy refused cuEventDestroy;
            "cuEventDestroy" 4000 Legacy event cuEventDestroy_v2;
            "cuEventElapsedTime" 2000 Legacy event cuEventElapsedTime;
            "cuEventElapsedTime" 12080 Legacy event cuEventElapsedTime_v2;
            "cuEventQuery" 2000 Legacy event cuEventQuery;
            "cuEventRecord" 2000 Legacy event cuEventRecord;
            "cuEventRecord" 7000 PerThread event cuEventRecord_ptsz;
            "cuEventRecordWithFlags" 11010 Legacy event cuEventRecordWithFlags;
            "cuEventRecordWithFlags" 11010 PerThread event cuEventRecordWithFlags_ptsz;
            "cuEventSynchronize" 2000 Legacy event cuEventSynchronize;
            "cuExternalMemoryGetMappedBuffer" 10000 Legacy refused cuExternalMemoryGetMappedBuffer;
            "cuExternalMemoryGetMappedMipmappedArray" 10000 Legacy refused cuExternalMemoryGetMappedMipmappedArray;
            "cuFlushGPUDirectRDMAWrites" 11030 Legacy refused cuFlushGPUDirectRDMAWrites;
            "cuFuncGetAttribute" 2020 Legacy module cuFuncGetAttribute;
            "cuFuncGetModule" 11000 Legacy module cuFuncGetModule;
            "cuFuncGetName" 12030 Legacy module cuFuncGetName;
            "cuFuncGetParamCount" 13020 Legacy refused cuFuncGetParamCount;
            "cuFuncGetParamInfo" 12040 Legacy refused cuFuncGetParamInfo;
            "cuFuncIsLoaded" 12040 Legacy module cuFuncIsLoaded;
            "cuFuncLoad" 12040 Legacy module cuFuncLoad;
            "cuFuncSetAttribute" 9000 Legacy module cuFuncSetAttribute;
            "cuFuncSetBlockShape" 2000 Legacy refused cuFuncSetBlockShape;
            "cuFuncSetCacheConfig" 3000 Legacy module cuFuncSetCacheConfig;
            "cuFuncSetSharedMemConfig" 4020 Legacy refused cuFuncSetSharedMemConfig;
            "cuFuncSetSharedSize" 2000 Legacy refused cuFuncSetSharedSize;
            "cuGLCtxCreate" 2000 Legacy refused cuGLCtxCreate;
            "cuGLCtxCreate" 3020 Legacy refused cuGLCtxCreate_v2;
            "cuGLGetDevices" 4010 Legacy refused cuGLGetDevices;
            "cuGLGetDevices" 6050 Legacy refused cuGLGetDevices_v2;
            "cuGLInit" 2000 Legacy refused cuGLInit;
            "cuGLMapBufferObject" 2000 Legacy refused cuGLMapBufferObject;
            "cuGLMapBufferObject" 3020 Legacy refused cuGLMapBufferObject_v2;
            "cuGLMapBufferObject" 7000 PerThread refused cuGLMapBufferObject_v2_ptds;
            "cuGLMapBufferObjectAsync" 2030 Legacy refused cuGLMapBufferObjectAsync;
            "cuGLMapBufferObjectAsync" 3020 Legacy refused cuGLMapBufferObjectAsync_v2;
            "cuGLMapBufferObjectAsync" 7000 PerThread refused cuGLMapBufferObjectAsync_v2_ptsz;
            "cuGLRegisterBufferObject" 2000 Legacy refused cuGLRegisterBufferObject;
            "cuGLSetBufferObjectMapFlags" 2030 Legacy refused cuGLSetBufferObjectMapFlags;
            "cuGLUnmapBufferObject" 2000 Legacy refused cuGLUnmapBufferObject;
            "cuGLUnmapBufferObjectAsync" 2030 Legacy refused cuGLUnmapBufferObjectAsync;
            "cuGLUnregisterBufferObject" 2000 Legacy refused cuGLUnregisterBufferObject;
            "cuGetErrorName" 6000 Legacy errors cuGetErrorName;
            "cuGetErrorString" 6000 Legacy errors cuGetErrorString;
            "cuGetExportTable" 3000 Legacy context cuGetExportTable;
            "cuGetProcAddress" 11030 Legacy proc_address cuGetProcAddress;
            "cuGetProcAddress" 12000 Legacy proc_address cuGetProcAddress_v2;
            "cuGetProcAddress" 12000 PerThread proc_address cuGetProcAddress_v2_ptsz;
            "cuGraphAddBatchMemOpNode" 11070 Legacy refused cuGraphAddBatchMemOpNode;
            "cuGraphAddChildGraphNode" 10000 Legacy refused cuGraphAddChildGraphNode;
            "cuGraphAddDependencies" 10000 Legacy refused cuGraphAddDependencies;
            "cuGraphAddDependencies" 12030 Legacy refused cuGraphAddDependencies_v2;
            "cuGraphAddEmptyNode" 10000 Legacy refused cuGraphAddEmptyNode;
            "cuGraphAddEventRecordNode" 11010 Legacy refused cuGraphAddEventRecordNode;
            "cuGraphAddEventWaitNode" 11010 Legacy refused cuGraphAddEventWaitNode;
            "cuGraphAddExternalSemaphoresSignalNode" 11020 Legacy refused cuGraphAddExternalSemaphoresSignalNode;
            "cuGraphAddExternalSemaphoresWaitNode" 11020 Legacy refused cuGraphAddExternalSemaphoresWaitNode;
            "cuGraphAddHostNode" 10000 Legacy refused cuGraphAddHostNode;
            "cuGraphAddKernelNode" 10000 Legacy refused cuGraphAddKernelNode;
            "cuGraphAddKernelNode" 12000 Legacy refused cuGraphAddKernelNode_v2;
            "cuGraphAddMemAllocNode" 11040 Legacy refused cuGraphAddMemAllocNode;
            "cuGraphAddMemFreeNode" 11040 Legacy refused cuGraphAddMemFreeNode;
            "cuGraphAddMemcpyNode" 10000 Legacy refused cuGraphAddMemcpyNode;
            "cuGraphAddMemsetNode" 10000 Legacy refused cuGraphAddMemsetNode;
            "cuGraphAddNode" 12020 Legacy refused cuGraphAddNode;
            "cuGraphAddNode" 12030 Legacy refused cuGraphAddNode_v2;
            "cuGraphAddNode" 13040 Legacy refused cuGraphAddNode_v3;
            "cuGraphBatchMemOpNodeGetParams" 11070 Legacy refused cuGraphBatchMemOpNodeGetParams;
            "cuGraphBatchMemOpNodeSetParams" 11070 Legacy refused cuGraphBatchMemOpNodeSetParams;
            "cuGraphChildGraphNodeGetGraph" 10000 Legacy refused cuGraphChildGraphNodeGetGraph;
            "cuGraphClone" 10000 Legacy refused cuGraphClone;
            "cuGraphConditionalHandleCreate" 12030 Legacy refused cuGraphConditionalHandleCreate;
            "cuGraphCreate" 10000 Legacy graph cuGraphCreate;
            "cuGraphDebugDotPrint" 11030 Legacy refused cuGraphDebugDotPrint;
            "cuGraphDestroy" 10000 Legacy graph cuGraphDestroy;
            "cuGraphDestroyNode" 10000 Legacy refused cuGraphDestroyNode;
            "cuGraphEventRecordNodeGetEvent" 11010 Legacy refused cuGraphEventRecordNodeGetEvent;
            "cuGraphEventRecordNodeSetEvent" 11010 Legacy refused cuGraphEventRecordNodeSetEvent;
            "cuGraphEventWaitNodeGetEvent" 11010 Legacy refused cuGraphEventWaitNodeGetEvent;
            "cuGraphEventWaitNodeSetEvent" 11010 Legacy refused cuGraphEventWaitNodeSetEvent;
            "cuGraphExecBatchMemOpNodeSetParams" 11070 Legacy refused cuGraphExecBatchMemOpNodeSetParams;
            "cuGraphExecChildGraphNodeSetParams" 11010 Legacy refused cuGraphExecChildGraphNodeSetParams;
            "cuGraphExecDestroy" 10000 Legacy graph cuGraphExecDestroy;
            "cuGraphExecEventRecordNodeSetEvent" 11010 Legacy refused cuGraphExecEventRecordNodeSetEvent;
            "cuGraphExecEventWaitNodeSetEvent" 11010 Legacy refused cuGraphExecEventWaitNodeSetEvent;
            "cuGraphExecExternalSemaphoresSignalNodeSetParams" 11020 Legacy refused cuGraphExecExternalSemaphoresSignalNodeSetParams;
            "cuGraphExecExternalSemaphoresWaitNodeSetParams" 11020 Legacy refused cuGraphExecExternalSemaphoresWaitNodeSetParams;
            "cuGraphExecGetFlags" 12000 Legacy refused cuGraphExecGetFlags;
            "cuGraphExecGetId" 13010 Legacy refused cuGraphExecGetId;
            "cuGraphExecHostNodeSetParams" 10020 Legacy refused cuGraphExecHostNodeSetParams;
            "cuGraphExecKernelNodeSetParams" 10010 Legacy refused cuGraphExecKernelNodeSetParams;
            "cuGraphExecKernelNodeSetParams" 12000 Legacy refused cuGraphExecKernelNodeSetParams_v2;
            "cuGraphExecMemcpyNodeSetParams" 10020 Legacy refused cuGraphExecMemcpyNodeSetParams;
            "cuGraphExecMemsetNodeSetParams" 10020 Legacy refused cuGraphExecMemsetNodeSetParams;
            "cuGraphExecNodeSetParams" 12020 Legacy refused cuGraphExecNodeSetParams;
            "cuGraphExecUpdate" 10020 Legacy refused cuGraphExecUpdate;
            "cuGraphExecUpdate" 12000 Legacy refused cuGraphExecUpdate_v2;
            "cuGraphExternalSemaphoresSignalNodeGetParams" 11020 Legacy refused cuGraphExternalSemaphoresSignalNodeGetParams;
            "cuGraphExternalSemaphoresSignalNodeSetParams" 11020 Legacy refused cuGraphExternalSemaphoresSignalNodeSetParams;
            "cuGraphExternalSemaphoresWaitNodeGetParams" 11020 Legacy refused cuGraphExternalSemaphoresWaitNodeGetParams;
            "cuGraphExternalSemaphoresWaitNodeSetParams" 11020 Legacy refused cuGraphExternalSemaphoresWaitNodeSetParams;
            "cuGraphGetEdges" 10000 Legacy refused cuGraphGetEdges;
            "cuGraphGetEdges" 12030 Legacy refused cuGraphGetEdges_v2;
            "cuGraphGetId" 13010 Legacy refused cuGraphGetId;
            "cuGraphGetNodes" 10000 Legacy graph cuGraphGetNodes;
            "cuGraphGetRootNodes" 10000 Legacy refused cuGraphGetRootNodes;
            "cuGraphHostNodeGetParams" 10000 Legacy refused cuGraphHostNodeGetParams;
            "cuGraphHostNodeSetParams" 10000 Legacy refused cuGraphHostNodeSetParams;
            "cuGraphInstantiate" 10000 Legacy refused cuGraphInstantiate;
            "cuGraphInstantiate" 11000 Legacy refused cuGraphInstantiate_v2;
            "cuGraphInstantiateWithFlags" 11040 Legacy graph cuGraphInstantiateWithFlags;
            "cuGraphInstantiateWithParams" 12000 Legacy graph cuGraphInstantiateWithParams;
            "cuGraphInstantiateWithParams" 12000 PerThread graph cuGraphInstantiateWithParams_ptsz;
            "cuGraphKernelNodeCopyAttributes" 11000 Legacy refused cuGraphKernelNodeCopyAttributes;
            "cuGraphKernelNodeGetAttribute" 11000 Legacy refused cuGraphKernelNodeGetAttribute;
            "cuGraphKernelNodeGetParams" 10000 Legacy refused cuGraphKernelNodeGetParams;
            "cuGraphKernelNodeGetParams" 12000 Legacy refused cuGraphKernelNodeGetParams_v2;
            "cuGraphKernelNodeSetAttribute" 11000 Legacy refused cuGraphKernelNodeSetAttribute;
            "cuGraphKernelNodeSetParams" 10000 Legacy refused cuGraphKernelNodeSetParams;
            "cuGraphKernelNodeSetParams" 12000 Legacy refused cuGraphKernelNodeSetParams_v2;
            "cuGraphLaunch" 10000 Legacy graph cuGraphLaunch;
            "cuGraphLaunch" 10000 PerThread graph cuGraphLaunch_ptsz;
            "cuGraphMemAllocNodeGetParams" 11040 Legacy refused cuGraphMemAllocNodeGetParams;
            "cuGraphMemFreeNodeGetParams" 11040 Legacy refused cuGraphMemFreeNodeGetParams;
            "cuGraphMemcpyNodeGetParams" 10000 Legacy refused cuGraphMemcpyNodeGetParams;
            "cuGraphMemcpyNodeSetParams" 10000 Legacy refused cuGraphMemcpyNodeSetParams;
            "cuGraphMemsetNodeGetParams" 10000 Legacy refused cuGraphMemsetNodeGetParams;
            "cuGraphMemsetNodeSetParams" 10000 Legacy refused cuGraphMemsetNodeSetParams;
            "cuGraphNodeFindInClone" 10000 Legacy refused cuGraphNodeFindInClone;
            "cuGraphNodeGetContainingGraph" 13010 Legacy refused cuGraphNodeGetContainingGraph;
            "cuGraphNodeGetDependencies" 10000 Legacy refused cuGraphNodeGetDependencies;
            "cuGraphNodeGetDependencies" 12030 Legacy refused cuGraphNodeGetDependencies_v2;
            "cuGraphNodeGetDependentNodes" 10000 Legacy refused cuGraphNodeGetDependentNodes;
            "cuGraphNodeGetDependentNodes" 12030 Legacy refused cuGraphNodeGetDependentNodes_v2;
            "cuGraphNodeGetEnabled" 11060 Legacy refused cuGraphNodeGetEnabled;
            "cuGraphNodeGetLocalId" 13010 Legacy refused cuGraphNodeGetLocalId;
            "cuGraphNodeGetParams" 13020 Legacy refused cuGraphNodeGetParams;
            "cuGraphNodeGetToolsId" 13010 Legacy refused cuGraphNodeGetToolsId;
            "cuGraphNodeGetType" 10000 Legacy refused cuGraphNodeGetType;
            "cuGraphNodeSetEnabled" 11060 Legacy refused cuGraphNodeSetEnabled;
            "cuGraphNodeSetParams" 12020 Legacy refused cuGraphNodeSetParams;
            "cuGraphNodeSetParams" 13040 Legacy refused cuGraphNodeSetParams_v2;
            "cuGraphReleaseUserObject" 11030 Legacy refused cuGraphReleaseUserObject;
            "cuGraphRemoveDependencies" 10000 Legacy refused cuGraphRemoveDependencies;
            "cuGraphRemoveDependencies" 12030 Legacy refused cuGraphRemoveDependencies_v2;
            "cuGraphRetainUserObject" 11030 Legacy refused cuGraphRetainUserObject;
            "cuGraphUpload" 11010 Legacy graph cuGraphUpload;
            "cuGraphUpload" 11010 PerThread graph cuGraphUpload_ptsz;
            "cuGraphicsEGLRegisterImage" 7000 Legacy refused cuGraphicsEGLRegisterImage;
            "cuGraphicsGLRegisterBuffer" 3000 Legacy refused cuGraphicsGLRegisterBuffer;
            "cuGraphicsGLRegisterImage" 3000 Legacy refused cuGraphicsGLRegisterImage;
            "cuGraphicsMapResources" 3000 Legacy refused cuGraphicsMapResources;
            "cuGraphicsMapResources" 7000 PerThread refused cuGraphicsMapResources_ptsz;
            "cuGraphicsResourceGetMappedEglFrame" 7000 Legacy refused cuGraphicsResourceGetMappedEglFrame;
            "cuGraphicsResourceGetMappedMipmappedArray" 5000 Legacy refused cuGraphicsResourceGetMappedMipmappedArray;
            "cuGraphicsResourceGetMappedPointer" 3000 Legacy refused cuGraphicsResourceGetMappedPointer;
            "cuGraphicsResourceGetMappedPointer" 3020 Legacy refused cuGraphicsResourceGetMappedPointer_v2;
            "cuGraphicsResourceSetMapFlags" 3000 Legacy refused cuGraphicsResourceSetMapFlags;
            "cuGraphicsResourceSetMapFlags" 6050 Legacy refused cuGraphicsResourceSetMapFlags_v2;
            "cuGraphicsSubResourceGetMappedArray" 3000 Legacy refused cuGraphicsSubResourceGetMappedArray;
            "cuGraphicsUnmapResources" 3000 Legacy refused cuGraphicsUnmapResources;
            "cuGraphicsUnmapResources" 7000 PerThread refused cuGraphicsUnmapResources_ptsz;
            "cuGraphicsUnregisterResource" 3000 Legacy refused cuGraphicsUnregisterResource;
            "cuGraphicsVDPAURegisterOutputSurface" 3010 Legacy refused cuGraphicsVDPAURegisterOutputSurface;
            "cuGraphicsVDPAURegisterVideoSurface" 3010 Legacy refused cuGraphicsVDPAURegisterVideoSurface;
            "cuGreenCtxCreate" 12040 Legacy refused cuGreenCtxCreate;
            "cuGreenCtxDestroy" 12040 Legacy refused cuGreenCtxDestroy;
            "cuGreenCtxGetDevResource" 12040 Legacy refused cuGreenCtxGetDevResource;
            "cuGreenCtxGetId" 12090 Legacy refused cuGreenCtxGetId;
            "cuGreenCtxRecordEvent" 12040 Legacy refused cuGreenCtxRecordEvent;
            "cuGreenCtxStreamCreate" 12050 Legacy refused cuGreenCtxStreamCreate;
            "cuGreenCtxWaitEvent" 12040 Legacy refused cuGreenCtxWaitEvent;
            "cuImportExternalMemory" 10000 Legacy refused cuImportExternalMemory;
            "cuImportExternalSemaphore" 10000 Legacy refused cuImportExternalSemaphore;
            "cuInit" 2000 Legacy device cuInit;
            "cuIpcCloseMemHandle" 4010 Legacy ipc cuIpcCloseMemHandle;
            "cuIpcGetEventHandle" 4010 Legacy event cuIpcGetEventHandle;
            "cuIpcGetMemHandle" 4010 Legacy ipc cuIpcGetMemHandle;
            "cuIpcOpenEventHandle" 4010 Legacy event cuIpcOpenEventHandle;
            "cuIpcOpenMemHandle" 4010 Legacy refused cuIpcOpenMemHandle;
            "cuIpcOpenMemHandle" 11000 Legacy ipc cuIpcOpenMemHandle_v2;
            "cuKernelGetAttribute" 12000 Legacy module cuKernelGetAttribute;
            "cuKernelGetFunction" 12000 Legacy module cuKernelGetFunction;
            "cuKernelGetLibrary" 12050 Legacy module cuKernelGetLibrary;
            "cuKernelGetName" 12030 Legacy module cuKernelGetName;
            "cuKernelGetParamCount" 13020 Legacy refused cuKernelGetParamCount;
            "cuKernelGetParamInfo" 12040 Legacy refused cuKernelGetParamInfo;
            "cuKernelSetAttribute" 12000 Legacy module cuKernelSetAttribute;
            "cuKernelSetCacheConfig" 12000 Legacy module cuKernelSetCacheConfig;
            "cuLaunch" 2000 Legacy refused cuLaunch;
            "cuLaunchCooperativeKernel" 9000 Legacy launch cuLaunchCooperativeKernel;
            "cuLaunchCooperativeKernel" 9000 PerThread launch cuLaunchCooperativeKernel_ptsz;
            "cuLaunchCooperativeKernelMultiDevice" 9000 Legacy refused cuLaunchCooperativeKernelMultiDevice;
            "cuLaunchGrid" 2000 Legacy refused cuLaunchGrid;
            "cuLaunchGridAsync" 2000 Legacy refused cuLaunchGridAsync;
            "cuLaunchHostFunc" 10000 Legacy launch cuLaunchHostFunc;
            "cuLaunchHostFunc" 13010 Legacy refused cuLaunchHostFunc_v2;
            "cuLaunchHostFunc" 10000 PerThread launch cuLaunchHostFunc_ptsz;
            "cuLaunchHostFunc" 13010 PerThread refused cuLaunchHostFunc_v2_ptsz;
            "cuLaunchKernel" 4000 Legacy launch cuLaunchKernel;
            "cuLaunchKernel" 7000 PerThread launch cuLaunchKernel_ptsz;
            "cuLaunchKernelEx" 11060 Legacy launch cuLaunchKernelEx;
            "cuLaunchKernelEx" 11060 PerThread launch cuLaunchKernelEx_ptsz;
            "cuLibraryEnumerateKernels" 12040 Legacy refused cuLibraryEnumerateKernels;
            "cuLibraryGetGlobal" 12000 Legacy module cuLibraryGetGlobal;
            "cuLibraryGetKernel" 12000 Legacy module cuLibraryGetKernel;
            "cuLibraryGetKernelCount" 12040 Legacy refused cuLibraryGetKernelCount;
            "cuLibraryGetManaged" 12000 Legacy refused cuLibraryGetManaged;
            "cuLibraryGetModule" 12000 Legacy module cuLibraryGetModule;
            "cuLibraryGetUnifiedFunction" 12000 Legacy refused cuLibraryGetUnifiedFunction;
            "cuLibraryLoadData" 12000 Legacy module cuLibraryLoadData;
            "cuLibraryLoadFromFile" 12000 Legacy module cuLibraryLoadFromFile;
            "cuLibraryUnload" 12000 Legacy module cuLibraryUnload;
            "cuLinkAddData" 5050 Legacy refused cuLinkAddData;
            "cuLinkAddData" 6050 Legacy refused cuLinkAddData_v2;
            "cuLinkAddFile" 5050 Legacy refused cuLinkAddFile;
            "cuLinkAddFile" 6050 Legacy refused cuLinkAddFile_v2;
            "cuLinkComplete" 5050 Legacy refused cuLinkComplete;
            "cuLinkCreate" 5050 Legacy refused cuLinkCreate;
            "cuLinkCreate" 6050 Legacy refused cuLinkCreate_v2;
            "cuLinkDestroy" 5050 Legacy refused cuLinkDestroy;
            "cuLogicalEndpointAddDevice" 13030 Legacy refused cuLogicalEndpointAddDevice;
            "cuLogicalEndpointBindAddr" 13030 Legacy refused cuLogicalEndpointBindAddr;
            "cuLogicalEndpointBindMem" 13030 Legacy refused cuLogicalEndpointBindMem;
            "cuLogicalEndpointCreate" 13030 Legacy refused cuLogicalEndpointCreate;
            "cuLogicalEndpointDestroy" 13030 Legacy refused cuLogicalEndpointDestroy;
            "cuLogicalEndpointExport" 13030 Legacy refused cuLogicalEndpointExport;
            "cuLogicalEndpointGetLimits" 13030 Legacy refused cuLogicalEndpointGetLimits;
            "cuLogicalEndpointIdRelease" 13030 Legacy refused cuLogicalEndpointIdRelease;
            "cuLogicalEndpointIdReserve" 13030 Legacy refused cuLogicalEndpointIdReserve;
            "cuLogicalEndpointImport" 13030 Legacy refused cuLogicalEndpointImport;
            "cuLogicalEndpointQuery" 13030 Legacy refused cuLogicalEndpointQuery;
            "cuLogicalEndpointUnbind" 13030 Legacy refused cuLogicalEndpointUnbind;
            "cuLogsCurrent" 12090 Legacy refused cuLogsCurrent;
            "cuLogsDumpToFile" 12090 Legacy refused cuLogsDumpToFile;
            "cuLogsDumpToMemory" 12090 Legacy refused cuLogsDumpToMemory;
            "cuLogsRegisterCallback" 12090 Legacy refused cuLogsRegisterCallback;
            "cuLogsUnregisterCallback" 12090 Legacy refused cuLogsUnregisterCallback;
            "cuMemAddressFree" 10020 Legacy vmm cuMemAddressFree;
            "cuMemAddressReserve" 10020 Legacy vmm cuMemAddressReserve;
            "cuMemAdvise" 8000 Legacy refused cuMemAdvise;
            "cuMemAdvise" 12020 Legacy refused cuMemAdvise_v2;
            "cuMemAlloc" 2000 Legacy refused cuMemAlloc;
            "cuMemAlloc" 3020 Legacy memory cuMemAlloc_v2;
            "cuMemAllocAsync" 11020 Legacy pool cuMemAllocAsync;
            "cuMemAllocAsync" 11020 PerThread pool cuMemAllocAsync_ptsz;
            "cuMemAllocFromPoolAsync" 11020 Legacy pool cuMemAllocFromPoolAsync;
            "cuMemAllocFromPoolAsync" 11020 PerThread pool cuMemAllocFromPoolAsync_ptsz;
            "cuMemAllocHost" 2000 Legacy refused cuMemAllocHost;
            "cuMemAllocHost" 3020 Legacy host cuMemAllocHost_v2;
            "cuMemAllocManaged" 6000 Legacy memory cuMemAllocManaged;
            "cuMemAllocPitch" 2000 Legacy refused cuMemAllocPitch;
            "cuMemAllocPitch" 3020 Legacy memory cuMemAllocPitch_v2;
            "cuMemBatchDecompressAsync" 12060 Legacy refused cuMemBatchDecompressAsync;
            "cuMemBatchDecompressAsync" 12060 PerThread refused cuMemBatchDecompressAsync_ptsz;
            "cuMemCreate" 10020 Legacy vmm cuMemCreate;
            "cuMemDiscardAndPrefetchBatchAsync" 13000 Legacy refused cuMemDiscardAndPrefetchBatchAsync;
            "cuMemDiscardAndPrefetchBatchAsync" 13000 PerThread refused cuMemDiscardAndPrefetchBatchAsync_ptsz;
            "cuMemDiscardBatchAsync" 13000 Legacy refused cuMemDiscardBatchAsync;
            "cuMemDiscardBatchAsync" 13000 PerThread refused cuMemDiscardBatchAsync_ptsz;
            "cuMemExportToShareableHandle" 10020 Legacy refused cuMemExportToShareableHandle;
            "cuMemFree" 2000 Legacy refused cuMemFree;
            "cuMemFree" 3020 Legacy memory cuMemFree_v2;
            "cuMemFreeAsync" 11020 Legacy pool cuMemFreeAsync;
            "cuMemFreeAsync" 11020 PerThread pool cuMemFreeAsync_ptsz;
            "cuMemFreeHost" 2000 Legacy host cuMemFreeHost;
            "cuMemGetAccess" 10020 Legacy vmm cuMemGetAccess;
            "cuMemGetAddressRange" 2000 Legacy refused cuMemGetAddressRange;
            "cuMemGetAddressRange" 3020 Legacy pointer cuMemGetAddressRange_v2;
            "cuMemGetAllocationGranularity" 10020 Legacy vmm cuMemGetAllocationGranularity;
            "cuMemGetAllocationPropertiesFromHandle" 10020 Legacy vmm cuMemGetAllocationPropertiesFromHandle;
            "cuMemGetDefaultMemPool" 13000 Legacy refused cuMemGetDefaultMemPool;
            "cuMemGetHandleForAddressRange" 11070 Legacy refused cuMemGetHandleForAddressRange;
            "cuMemGetInfo" 2000 Legacy refused cuMemGetInfo;
            "cuMemGetInfo" 3020 Legacy memory cuMemGetInfo_v2;
            "cuMemGetLocationInfo" 13040 Legacy refused cuMemGetLocationInfo;
            "cuMemGetMemPool" 13000 Legacy refused cuMemGetMemPool;
            "cuMemHostAlloc" 2020 Legacy host cuMemHostAlloc;
            "cuMemHostGetDevicePointer" 2020 Legacy refused cuMemHostGetDevicePointer;
            "cuMemHostGetDevicePointer" 3020 Legacy host cuMemHostGetDevicePointer_v2;
            "cuMemHostGetFlags" 2030 Legacy host cuMemHostGetFlags;
            "cuMemHostRegister" 4000 Legacy refused cuMemHostRegister;
            "cuMemHostRegister" 6050 Legacy host cuMemHostRegister_v2;
            "cuMemHostUnregister" 4000 Legacy host cuMemHostUnregister;
            "cuMemImportFromShareableHandle" 10020 Legacy refused cuMemImportFromShareableHandle;
            "cuMemMap" 10020 Legacy vmm cuMemMap;
            "cuMemMapArrayAsync" 11010 Legacy refused cuMemMapArrayAsync;
            "cuMemMapArrayAsync" 11010 PerThread refused cuMemMapArrayAsync_ptsz;
            "cuMemPoolCreate" 11020 Legacy pool cuMemPoolCreate;
            "cuMemPoolDestroy" 11020 Legacy pool cuMemPoolDestroy;
            "cuMemPoolExportPointer" 11020 Legacy refused cuMemPoolExportPointer;
            "cuMemPoolExportToShareableHandle" 11020 Legacy refused cuMemPoolExportToShareableHandle;
            "cuMemPoolGetAccess" 11020 Legacy pool cuMemPoolGetAccess;
            "cuMemPoolGetAttribute" 11020 Legacy pool cuMemPoolGetAttribute;
            "cuMemPoolImportFromShareableHandle" 11020 Legacy refused cuMemPoolImportFromShareableHandle;
            "cuMemPoolImportPointer" 11020 Legacy refused cuMemPoolImportPointer;
            "cuMemPoolSetAccess" 11020 Legacy pool cuMemPoolSetAccess;
            "cuMemPoolSetAttribute" 11020 Legacy pool cuMemPoolSetAttribute;
            "cuMemPoolTrimTo" 11020 Legacy pool cuMemPoolTrimTo;
            "cuMemPrefetchAsync" 8000 Legacy refused cuMemPrefetchAsync;
            "cuMemPrefetchAsync" 12020 Legacy refused cuMemPrefetchAsync_v2;
            "cuMemPrefetchAsync" 8000 PerThread refused cuMemPrefetchAsync_ptsz;
            "cuMemPrefetchAsync" 12020 PerThread refused cuMemPrefetchAsync_v2_ptsz;
            "cuMemPrefetchBatchAsync" 13000 Legacy refused cuMemPrefetchBatchAsync;
            "cuMemPrefetchBatchAsync" 13000 PerThread refused cuMemPrefetchBatchAsync_ptsz;
            "cuMemRangeGetAttribute" 8000 Legacy refused cuMemRangeGetAttribute;
            "cuMemRangeGetAttributes" 8000 Legacy refused cuMemRangeGetAttributes;
            "cuMemRelease" 10020 Legacy vmm cuMemRelease;
            "cuMemRetainAllocationHandle" 11000 Legacy vmm cuMemRetainAllocationHandle;
            "cuMemSetAccess" 10020 Legacy vmm cuMemSetAccess;
            "cuMemSetMemPool" 13000 Legacy refused cuMemSetMemPool;
            "cuMemUnmap" 10020 Legacy vmm cuMemUnmap;
            "cuMemcpy" 4000 Legacy copy cuMemcpy;
            "cuMemcpy" 7000 PerThread copy cuMemcpy_ptds;
            "cuMemcpy2D" 2000 Legacy refused cuMemcpy2D;
            "cuMemcpy2D" 3020 Legacy copy cuMemcpy2D_v2;
            "cuMemcpy2D" 7000 PerThread copy cuMemcpy2D_v2_ptds;
            "cuMemcpy2DAsync" 2000 Legacy refused cuMemcpy2DAsync;
            "cuMemcpy2DAsync" 3020 Legacy copy cuMemcpy2DAsync_v2;
            "cuMemcpy2DAsync" 7000 PerThread copy cuMemcpy2DAsync_v2_ptsz;
            "cuMemcpy2DUnaligned" 2000 Legacy refused cuMemcpy2DUnaligned;
            "cuMemcpy2DUnaligned" 3020 Legacy copy cuMemcpy2DUnaligned_v2;
            "cuMemcpy2DUnaligned" 7000 PerThread copy cuMemcpy2DUnaligned_v2_ptds;
            "cuMemcpy3D" 2000 Legacy refused cuMemcpy3D;
            "cuMemcpy3D" 3020 Legacy refused cuMemcpy3D_v2;
            "cuMemcpy3D" 7000 PerThread refused cuMemcpy3D_v2_ptds;
            "cuMemcpy3DAsync" 2000 Legacy refused cuMemcpy3DAsync;
            "cuMemcpy3DAsync" 3020 Legacy refused cuMemcpy3DAsync_v2;
            "cuMemcpy3DAsync" 7000 PerThread refused cuMemcpy3DAsync_v2_ptsz;
            "cuMemcpy3DBatchAsync" 12080 Legacy refused cuMemcpy3DBatchAsync;
            "cuMemcpy3DBatchAsync" 13000 Legacy refused cuMemcpy3DBatchAsync_v2;
            "cuMemcpy3DBatchAsync" 12080 PerThread refused cuMemcpy3DBatchAsync_ptsz;
            "cuMemcpy3DBatchAsync" 13000 PerThread refused cuMemcpy3DBatchAsync_v2_ptsz;
            "cuMemcpy3DPeer" 4000 Legacy refused cuMemcpy3DPeer;
            "cuMemcpy3DPeer" 7000 PerThread refused cuMemcpy3DPeer_ptds;
            "cuMemcpy3DPeerAsync" 4000 Legacy refused cuMemcpy3DPeerAsync;
            "cuMemcpy3DPeerAsync" 7000 PerThread refused cuMemcpy3DPeerAsync_ptsz;
            "cuMemcpy3DWithAttributesAsync" 13020 Legacy refused cuMemcpy3DWithAttributesAsync;
            "cuMemcpy3DWithAttributesAsync" 13020 PerThread refused cuMemcpy3DWithAttributesAsync_ptsz;
            "cuMemcpyAsync" 4000 Legacy copy cuMemcpyAsync;
            "cuMemcpyAsync" 7000 PerThread copy cuMemcpyAsync_ptsz;
            "cuMemcpyAtoA" 2000 Legacy refused cuMemcpyAtoA;
            "cuMemcpyAtoA" 3020 Legacy refused cuMemcpyAtoA_v2;
            "cuMemcpyAtoA" 7000 PerThread refused cuMemcpyAtoA_v2_ptds;
            "cuMemcpyAtoD" 2000 Legacy refused cuMemcpyAtoD;
            "cuMemcpyAtoD" 3020 Legacy refused cuMemcpyAtoD_v2;
            "cuMemcpyAtoD" 7000 PerThread refused cuMemcpyAtoD_v2_ptds;
            "cuMemcpyAtoH" 2000 Legacy refused cuMemcpyAtoH;
            "cuMemcpyAtoH" 3020 Legacy refused cuMemcpyAtoH_v2;
            "cuMemcpyAtoH" 7000 PerThread refused cuMemcpyAtoH_v2_ptds;
            "cuMemcpyAtoHAsync" 2000 Legacy refused cuMemcpyAtoHAsync;
            "cuMemcpyAtoHAsync" 3020 Legacy refused cuMemcpyAtoHAsync_v2;
            "cuMemcpyAtoHAsync" 7000 PerThread refused cuMemcpyAtoHAsync_v2_ptsz;
            "cuMemcpyBatchAsync" 12080 Legacy refused cuMemcpyBatchAsync;
            "cuMemcpyBatchAsync" 13000 Legacy refused cuMemcpyBatchAsync_v2;
            "cuMemcpyBatchAsync" 12080 PerThread refused cuMemcpyBatchAsync_ptsz;
            "cuMemcpyBatchAsync" 13000 PerThread refused cuMemcpyBatchAsync_v2_ptsz;
            "cuMemcpyDtoA" 2000 Legacy refused cuMemcpyDtoA;
            "cuMemcpyDtoA" 3020 Legacy refused cuMemcpyDtoA_v2;
            "cuMemcpyDtoA" 7000 PerThread refused cuMemcpyDtoA_v2_ptds;
            "cuMemcpyDtoD" 2000 Legacy refused cuMemcpyDtoD;
            "cuMemcpyDtoD" 3020 Legacy copy cuMemcpyDtoD_v2;
            "cuMemcpyDtoD" 7000 PerThread copy cuMemcpyDtoD_v2_ptds;
            "cuMemcpyDtoDAsync" 3000 Legacy refused cuMemcpyDtoDAsync;
            "cuMemcpyDtoDAsync" 3020 Legacy copy cuMemcpyDtoDAsync_v2;
            "cuMemcpyDtoDAsync" 7000 PerThread copy cuMemcpyDtoDAsync_v2_ptsz;
            "cuMemcpyDtoH" 2000 Legacy refused cuMemcpyDtoH;
            "cuMemcpyDtoH" 3020 Legacy copy cuMemcpyDtoH_v2;
            "cuMemcpyDtoH" 7000 PerThread copy cuMemcpyDtoH_v2_ptds;
            "cuMemcpyDtoHAsync" 2000 Legacy refused cuMemcpyDtoHAsync;
            "cuMemcpyDtoHAsync" 3020 Legacy copy cuMemcpyDtoHAsync_v2;
            "cuMemcpyDtoHAsync" 7000 PerThread copy cuMemcpyDtoHAsync_v2_ptsz;
            "cuMemcpyHtoA" 2000 Legacy refused cuMemcpyHtoA;
            "cuMemcpyHtoA" 3020 Legacy refused cuMemcpyHtoA_v2;
            "cuMemcpyHtoA" 7000 PerThread refused cuMemcpyHtoA_v2_ptds;
            "cuMemcpyHtoAAsync" 2000 Legacy refused cuMemcpyHtoAAsync;
            "cuMemcpyHtoAAsync" 3020 Legacy refused cuMemcpyHtoAAsync_v2;
            "cuMemcpyHtoAAsync" 7000 PerThread refused cuMemcpyHtoAAsync_v2_ptsz;
            "cuMemcpyHtoD" 2000 Legacy refused cuMemcpyHtoD;
            "cuMemcpyHtoD" 3020 Legacy copy cuMemcpyHtoD_v2;
            "cuMemcpyHtoD" 7000 PerThread copy cuMemcpyHtoD_v2_ptds;
            "cuMemcpyHtoDAsync" 2000 Legacy refused cuMemcpyHtoDAsync;
            "cuMemcpyHtoDAsync" 3020 Legacy copy cuMemcpyHtoDAsync_v2;
            "cuMemcpyHtoDAsync" 7000 PerThread copy cuMemcpyHtoDAsync_v2_ptsz;
            "cuMemcpyPeer" 4000 Legacy copy cuMemcpyPeer;
            "cuMemcpyPeer" 7000 PerThread copy cuMemcpyPeer_ptds;
            "cuMemcpyPeerAsync" 4000 Legacy copy cuMemcpyPeerAsync;
            "cuMemcpyPeerAsync" 7000 PerThread copy cuMemcpyPeerAsync_ptsz;
            "cuMemcpyWithAttributesAsync" 13020 Legacy refused cuMemcpyWithAttributesAsync;
            "cuMemcpyWithAttributesAsync" 13020 PerThread refused cuMemcpyWithAttributesAsync_ptsz;
            "cuMemsetD16" 2000 Legacy refused cuMemsetD16;
            "cuMemsetD16" 3020 Legacy fill cuMemsetD16_v2;
            "cuMemsetD16" 7000 PerThread fill cuMemsetD16_v2_ptds;
            "cuMemsetD16Async" 3020 Legacy fill cuMemsetD16Async;
            "cuMemsetD16Async" 7000 PerThread fill cuMemsetD16Async_ptsz;
            "cuMemsetD2D16" 2000 Legacy refused cuMemsetD2D16;
            "cuMemsetD2D16" 3020 Legacy refused cuMemsetD2D16_v2;
            "cuMemsetD2D16" 7000 PerThread refused cuMemsetD2D16_v2_ptds;
            "cuMemsetD2D16Async" 3020 Legacy refused cuMemsetD2D16Async;
            "cuMemsetD2D16Async" 7000 PerThread refused cuMemsetD2D16Async_ptsz;
            "cuMemsetD2D32" 2000 Legacy refused cuMemsetD2D32;
            "cuMemsetD2D32" 3020 Legacy refused cuMemsetD2D32_v2;
            "cuMemsetD2D32" 7000 PerThread refused cuMemsetD2D32_v2_ptds;
            "cuMemsetD2D32Async" 3020 Legacy refused cuMemsetD2D32Async;
            "cuMemsetD2D32Async" 7000 PerThread refused cuMemsetD2D32Async_ptsz;
            "cuMemsetD2D8" 2000 Legacy refused cuMemsetD2D8;
            "cuMemsetD2D8" 3020 Legacy fill cuMemsetD2D8_v2;
            "cuMemsetD2D8" 7000 PerThread fill cuMemsetD2D8_v2_ptds;
            "cuMemsetD2D8Async" 3020 Legacy fill cuMemsetD2D8Async;
            "cuMemsetD2D8Async" 7000 PerThread fill cuMemsetD2D8Async_ptsz;
            "cuMemsetD32" 2000 Legacy refused cuMemsetD32;
            "cuMemsetD32" 3020 Legacy fill cuMemsetD32_v2;
            "cuMemsetD32" 7000 PerThread fill cuMemsetD32_v2_ptds;
            "cuMemsetD32Async" 3020 Legacy fill cuMemsetD32Async;
            "cuMemsetD32Async" 7000 PerThread fill cuMemsetD32Async_ptsz;
            "cuMemsetD8" 2000 Legacy refused cuMemsetD8;
            "cuMemsetD8" 3020 Legacy fill cuMemsetD8_v2;
            "cuMemsetD8" 7000 PerThread fill cuMemsetD8_v2_ptds;
            "cuMemsetD8Async" 3020 Legacy fill cuMemsetD8Async;
            "cuMemsetD8Async" 7000 PerThread fill cuMemsetD8Async_ptsz;
            "cuMipmappedArrayCreate" 5000 Legacy refused cuMipmappedArrayCreate;
            "cuMipmappedArrayDestroy" 5000 Legacy refused cuMipmappedArrayDestroy;
            "cuMipmappedArrayGetLevel" 5000 Legacy refused cuMipmappedArrayGetLevel;
            "cuMipmappedArrayGetMemoryRequirements" 11060 Legacy refused cuMipmappedArrayGetMemoryRequirements;
            "cuMipmappedArrayGetSparseProperties" 11010 Legacy refused cuMipmappedArrayGetSparseProperties;
            "cuModuleEnumerateFunctions" 12040 Legacy refused cuModuleEnumerateFunctions;
            "cuModuleGetFunction" 2000 Legacy module cuModuleGetFunction;
            "cuModuleGetFunctionCount" 12040 Legacy refused cuModuleGetFunctionCount;
            "cuModuleGetGlobal" 2000 Legacy refused cuModuleGetGlobal;
            "cuModuleGetGlobal" 3020 Legacy module cuModuleGetGlobal_v2;
            "cuModuleGetLoadingMode" 11070 Legacy module cuModuleGetLoadingMode;
            "cuModuleGetSurfRef" 3000 Legacy refused cuModuleGetSurfRef;
            "cuModuleGetTexRef" 2000 Legacy refused cuModuleGetTexRef;
            "cuModuleLoad" 2000 Legacy module cuModuleLoad;
            "cuModuleLoadData" 2000 Legacy module cuModuleLoadData;
            "cuModuleLoadDataEx" 2010 Legacy module cuModuleLoadDataEx;
            "cuModuleLoadFatBinary" 2000 Legacy module cuModuleLoadFatBinary;
            "cuModuleUnload" 2000 Legacy module cuModuleUnload;
            "cuMulticastAddDevice" 12010 Legacy refused cuMulticastAddDevice;
            "cuMulticastBindAddr" 12010 Legacy refused cuMulticastBindAddr;
            "cuMulticastBindAddr" 13010 Legacy refused cuMulticastBindAddr_v2;
            "cuMulticastBindMem" 12010 Legacy refused cuMulticastBindMem;
            "cuMulticastBindMem" 13010 Legacy refused cuMulticastBindMem_v2;
            "cuMulticastCreate" 12010 Legacy refused cuMulticastCreate;
            "cuMulticastGetGranularity" 12010 Legacy refused cuMulticastGetGranularity;
            "cuMulticastUnbind" 12010 Legacy refused cuMulticastUnbind;
            "cuOccupancyAvailableDynamicSMemPerBlock" 10020 Legacy refused cuOccupancyAvailableDynamicSMemPerBlock;
            "cuOccupancyMaxActiveBlocksPerMultiprocessor" 6050 Legacy module cuOccupancyMaxActiveBlocksPerMultiprocessor;
            "cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" 7000 Legacy module cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags;
            "cuOccupancyMaxActiveClusters" 11070 Legacy refused cuOccupancyMaxActiveClusters;
            "cuOccupancyMaxPotentialBlockSize" 6050 Legacy refused cuOccupancyMaxPotentialBlockSize;
            "cuOccupancyMaxPotentialBlockSizeWithFlags" 7000 Legacy refused cuOccupancyMaxPotentialBlockSizeWithFlags;
            "cuOccupancyMaxPotentialClusterSize" 11070 Legacy refused cuOccupancyMaxPotentialClusterSize;
            "cuParamSetSize" 2000 Legacy refused cuParamSetSize;
            "cuParamSetTexRef" 2000 Legacy refused cuParamSetTexRef;
            "cuParamSetf" 2000 Legacy refused cuParamSetf;
            "cuParamSeti" 2000 Legacy refused cuParamSeti;
            "cuParamSetv" 2000 Legacy refused cuParamSetv;
            "cuPointerGetAttribute" 4000 Legacy pointer cuPointerGetAttribute;
            "cuPointerGetAttributes" 7000 Legacy pointer cuPointerGetAttributes;
            "cuPointerSetAttribute" 6000 Legacy refused cuPointerSetAttribute;
            "cuProfilerInitialize" 4000 Legacy refused cuProfilerInitialize;
            "cuProfilerStart" 4000 Legacy launch cuProfilerStart;
            "cuProfilerStop" 4000 Legacy launch cuProfilerStop;
            "cuSignalExternalSemaphoresAsync" 10000 Legacy refused cuSignalExternalSemaphoresAsync;
            "cuSignalExternalSemaphoresAsync" 10000 PerThread refused cuSignalExternalSemaphoresAsync_ptsz;
            "cuStreamAddCallback" 5000 Legacy launch cuStreamAddCallback;
            "cuStreamAddCallback" 7000 PerThread launch cuStreamAddCallback_ptsz;
            "cuStreamAttachMemAsync" 6000 Legacy refused cuStreamAttachMemAsync;
            "cuStreamAttachMemAsync" 7000 PerThread refused cuStreamAttachMemAsync_ptsz;
            "cuStreamBatchMemOp" 8000 Legacy refused cuStreamBatchMemOp;
            "cuStreamBatchMemOp" 11070 Legacy refused cuStreamBatchMemOp_v2;
            "cuStreamBatchMemOp" 8000 PerThread refused cuStreamBatchMemOp_ptsz;
            "cuStreamBatchMemOp" 11070 PerThread refused cuStreamBatchMemOp_v2_ptsz;
            "cuStreamBeginCapture" 10000 Legacy refused cuStreamBeginCapture;
            "cuStreamBeginCapture" 10010 Legacy graph cuStreamBeginCapture_v2;
            "cuStreamBeginCapture" 10000 PerThread refused cuStreamBeginCapture_ptsz;
            "cuStreamBeginCapture" 10010 PerThread graph cuStreamBeginCapture_v2_ptsz;
            "cuStreamBeginCaptureToCig" 13010 Legacy refused cuStreamBeginCaptureToCig;
            "cuStreamBeginCaptureToCig" 13010 PerThread refused cuStreamBeginCaptureToCig_ptsz;
            "cuStreamBeginCaptureToGraph" 12030 Legacy graph cuStreamBeginCaptureToGraph;
            "cuStreamBeginCaptureToGraph" 12030 PerThread graph cuStreamBeginCaptureToGraph_ptsz;
            "cuStreamBeginRecaptureToGraph" 13030 Legacy refused cuStreamBeginRecaptureToGraph;
            "cuStreamCopyAttributes" 11000 Legacy refused cuStreamCopyAttributes;
            "cuStreamCopyAttributes" 11000 PerThread refused cuStreamCopyAttributes_ptsz;
            "cuStreamCreate" 2000 Legacy stream cuStreamCreate;
            "cuStreamCreateWithPriority" 5050 Legacy stream cuStreamCreateWithPriority;
            "cuStreamDestroy" 2000 Legacy refused cuStreamDestroy;
            "cuStreamDestroy" 4000 Legacy stream cuStreamDestroy_v2;
            "cuStreamEndCapture" 10000 Legacy graph cuStreamEndCapture;
            "cuStreamEndCapture" 10000 PerThread graph cuStreamEndCapture_ptsz;
            "cuStreamEndCaptureToCig" 13010 Legacy refused cuStreamEndCaptureToCig;
            "cuStreamEndCaptureToCig" 13010 PerThread refused cuStreamEndCaptureToCig_ptsz;
            "cuStreamGetAttribute" 11000 Legacy refused cuStreamGetAttribute;
            "cuStreamGetAttribute" 11000 PerThread refused cuStreamGetAttribute_ptsz;
            "cuStreamGetCaptureInfo" 10010 Legacy refused cuStreamGetCaptureInfo;
            "cuStreamGetCaptureInfo" 11030 Legacy graph cuStreamGetCaptureInfo_v2;
            "cuStreamGetCaptureInfo" 12030 Legacy graph cuStreamGetCaptureInfo_v3;
            "cuStreamGetCaptureInfo" 10010 PerThread refused cuStreamGetCaptureInfo_ptsz;
            "cuStreamGetCaptureInfo" 11030 PerThread graph cuStreamGetCaptureInfo_v2_ptsz;
            "cuStreamGetCaptureInfo" 12030 PerThread graph cuStreamGetCaptureInfo_v3_ptsz;
            "cuStreamGetCtx" 9020 Legacy stream cuStreamGetCtx;
            "cuStreamGetCtx" 12050 Legacy refused cuStreamGetCtx_v2;
            "cuStreamGetCtx" 9020 PerThread stream cuStreamGetCtx_ptsz;
            "cuStreamGetCtx" 12050 PerThread refused cuStreamGetCtx_v2_ptsz;
            "cuStreamGetDevResource" 13010 Legacy refused cuStreamGetDevResource;
            "cuStreamGetDevResource" 13010 PerThread refused cuStreamGetDevResource_ptsz;
            "cuStreamGetDevice" 12080 Legacy stream cuStreamGetDevice;
            "cuStreamGetDevice" 12080 PerThread stream cuStreamGetDevice_ptsz;
            "cuStreamGetFlags" 5050 Legacy stream cuStreamGetFlags;
            "cuStreamGetFlags" 7000 PerThread stream cuStreamGetFlags_ptsz;
            "cuStreamGetGreenCtx" 12040 Legacy refused cuStreamGetGreenCtx;
            "cuStreamGetId" 12000 Legacy stream cuStreamGetId;
            "cuStreamGetId" 12000 PerThread stream cuStreamGetId_ptsz;
            "cuStreamGetPriority" 5050 Legacy stream cuStreamGetPriority;
            "cuStreamGetPriority" 7000 PerThread stream cuStreamGetPriority_ptsz;
            "cuStreamIsCapturing" 10000 Legacy graph cuStreamIsCapturing;
            "cuStreamIsCapturing" 10000 PerThread graph cuStreamIsCapturing_ptsz;
            "cuStreamQuery" 2000 Legacy stream cuStreamQuery;
            "cuStreamQuery" 7000 PerThread stream cuStreamQuery_ptsz;
            "cuStreamSetAttribute" 11000 Legacy refused cuStreamSetAttribute;
            "cuStreamSetAttribute" 11000 PerThread refused cuStreamSetAttribute_ptsz;
            "cuStreamSynchronize" 2000 Legacy stream cuStreamSynchronize;
            "cuStreamSynchronize" 7000 PerThread stream cuStreamSynchronize_ptsz;
            "cuStreamUpdateCaptureDependencies" 11030 Legacy refused cuStreamUpdateCaptureDependencies;
            "cuStreamUpdateCaptureDependencies" 12030 Legacy refused cuStreamUpdateCaptureDependencies_v2;
            "cuStreamUpdateCaptureDependencies" 11030 PerThread refused cuStreamUpdateCaptureDependencies_ptsz;
            "cuStreamUpdateCaptureDependencies" 12030 PerThread refused cuStreamUpdateCaptureDependencies_v2_ptsz;
            "cuStreamWaitEvent" 3020 Legacy event cuStreamWaitEvent;
            "cuStreamWaitEvent" 7000 PerThread event cuStreamWaitEvent_ptsz;
            "cuStreamWaitValue32" 8000 Legacy refused cuStreamWaitValue32;
            "cuStreamWaitValue32" 11070 Legacy refused cuStreamWaitValue32_v2;
            "cuStreamWaitValue32" 8000 PerThread refused cuStreamWaitValue32_ptsz;
            "cuStreamWaitValue32" 11070 PerThread refused cuStreamWaitValue32_v2_ptsz;
            "cuStreamWaitValue64" 9000 Legacy refused cuStreamWaitValue64;
            "cuStreamWaitValue64" 11070 Legacy refused cuStreamWaitValue64_v2;
            "cuStreamWaitValue64" 9000 PerThread refused cuStreamWaitValue64_ptsz;
            "cuStreamWaitValue64" 11070 PerThread refused cuStreamWaitValue64_v2_ptsz;
            "cuStreamWriteValue32" 8000 Legacy refused cuStreamWriteValue32;
            "cuStreamWriteValue32" 11070 Legacy refused cuStreamWriteValue32_v2;
            "cuStreamWriteValue32" 8000 PerThread refused cuStreamWriteValue32_ptsz;
            "cuStreamWriteValue32" 11070 PerThread refused cuStreamWriteValue32_v2_ptsz;
            "cuStreamWriteValue64" 9000 Legacy refused cuStreamWriteValue64;
            "cuStreamWriteValue64" 11070 Legacy refused cuStreamWriteValue64_v2;
            "cuStreamWriteValue64" 9000 PerThread refused cuStreamWriteValue64_ptsz;
            "cuStreamWriteValue64" 11070 PerThread refused cuStreamWriteValue64_v2_ptsz;
            "cuSurfObjectCreate" 5000 Legacy refused cuSurfObjectCreate;
            "cuSurfObjectDestroy" 5000 Legacy refused cuSurfObjectDestroy;
            "cuSurfObjectGetResourceDesc" 5000 Legacy refused cuSurfObjectGetResourceDesc;
            "cuSurfRefGetArray" 3000 Legacy refused cuSurfRefGetArray;
            "cuSurfRefSetArray" 3000 Legacy refused cuSurfRefSetArray;
            "cuTensorMapEncodeIm2col" 12000 Legacy refused cuTensorMapEncodeIm2col;
            "cuTensorMapEncodeIm2colWide" 12080 Legacy refused cuTensorMapEncodeIm2colWide;
            "cuTensorMapEncodeTiled" 12000 Legacy refused cuTensorMapEncodeTiled;
            "cuTensorMapReplaceAddress" 12000 Legacy refused cuTensorMapReplaceAddress;
            "cuTexObjectCreate" 5000 Legacy refused cuTexObjectCreate;
            "cuTexObjectDestroy" 5000 Legacy refused cuTexObjectDestroy;
            "cuTexObjectGetResourceDesc" 5000 Legacy refused cuTexObjectGetResourceDesc;
            "cuTexObjectGetResourceViewDesc" 5000 Legacy refused cuTexObjectGetResourceViewDesc;
            "cuTexObjectGetTextureDesc" 5000 Legacy refused cuTexObjectGetTextureDesc;
            "cuTexRefCreate" 2000 Legacy refused cuTexRefCreate;
            "cuTexRefDestroy" 2000 Legacy refused cuTexRefDestroy;
            "cuTexRefGetAddress" 2000 Legacy refused cuTexRefGetAddress;
            "cuTexRefGetAddress" 3020 Legacy refused cuTexRefGetAddress_v2;
            "cuTexRefGetAddressMode" 2000 Legacy refused cuTexRefGetAddressMode;
            "cuTexRefGetArray" 2000 Legacy refused cuTexRefGetArray;
            "cuTexRefGetBorderColor" 8000 Legacy refused cuTexRefGetBorderColor;
            "cuTexRefGetFilterMode" 2000 Legacy refused cuTexRefGetFilterMode;
            "cuTexRefGetFlags" 2000 Legacy refused cuTexRefGetFlags;
            "cuTexRefGetFormat" 2000 Legacy refused cuTexRefGetFormat;
            "cuTexRefGetMaxAnisotropy" 5000 Legacy refused cuTexRefGetMaxAnisotropy;
            "cuTexRefGetMipmapFilterMode" 5000 Legacy refused cuTexRefGetMipmapFilterMode;
            "cuTexRefGetMipmapLevelBias" 5000 Legacy refused cuTexRefGetMipmapLevelBias;
            "cuTexRefGetMipmapLevelClamp" 5000 Legacy refused cuTexRefGetMipmapLevelClamp;
            "cuTexRefGetMipmappedArray" 5000 Legacy refused cuTexRefGetMipmappedArray;
            "cuTexRefSetAddress" 2000 Legacy refused cuTexRefSetAddress;
            "cuTexRefSetAddress" 3020 Legacy refused cuTexRefSetAddress_v2;
            "cuTexRefSetAddress2D" 2020 Legacy refused cuTexRefSetAddress2D;
            "cuTexRefSetAddress2D" 3020 Legacy refused cuTexRefSetAddress2D_v2;
            "cuTexRefSetAddress2D" 4010 Legacy refused cuTexRefSetAddress2D_v3;
            "cuTexRefSetAddressMode" 2000 Legacy refused cuTexRefSetAddressMode;
            "cuTexRefSetArray" 2000 Legacy refused cuTexRefSetArray;
            "cuTexRefSetBorderColor" 8000 Legacy refused cuTexRefSetBorderColor;
            "cuTexRefSetFilterMode" 2000 Legacy refused cuTexRefSetFilterMode;
            "cuTexRefSetFlags" 2000 Legacy refused cuTexRefSetFlags;
            "cuTexRefSetFormat" 2000 Legacy refused cuTexRefSetFormat;
            "cuTexRefSetMaxAnisotropy" 5000 Legacy refused cuTexRefSetMaxAnisotropy;
            "cuTexRefSetMipmapFilterMode" 5000 Legacy refused cuTexRefSetMipmapFilterMode;
            "cuTexRefSetMipmapLevelBias" 5000 Legacy refused cuTexRefSetMipmapLevelBias;
            "cuTexRefSetMipmapLevelClamp" 5000 Legacy refused cuTexRefSetMipmapLevelClamp;
            "cuTexRefSetMipmappedArray" 5000 Legacy refused cuTexRefSetMipmappedArray;
            "cuThreadExchangeStreamCaptureMode" 10010 Legacy graph cuThreadExchangeStreamCaptureMode;
            "cuUserObjectCreate" 11030 Legacy refused cuUserObjectCreate;
            "cuUserObjectRelease" 11030 Legacy refused cuUserObjectRelease;
            "cuUserObjectRetain" 11030 Legacy refused cuUserObjectRetain;
            "cuVDPAUCtxCreate" 3010 Legacy refused cuVDPAUCtxCreate;
            "cuVDPAUCtxCreate" 3020 Legacy refused cuVDPAUCtxCreate_v2;
            "cuVDPAUGetDevice" 3010 Legacy refused cuVDPAUGetDevice;
            "cuWaitExternalSemaphoresAsync" 10000 Legacy refused cuWaitExternalSemaphoresAsync;
            "cuWaitExternalSemaphoresAsync" 10000 PerThread refused cuWaitExternalSemaphoresAsync_ptsz;
        }
    };
}
pub(crate) use each_function;

each_function! { rows }
