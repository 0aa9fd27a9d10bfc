//! The built library, loaded as a program would, and what tests do often.

use std::ffi::{CString, c_char};
use std::path::PathBuf;
use std::process::Command;

use libloading::Library;
use serde_json::Value;

pub(crate) const SUCCESS: i32 = 0;
pub(crate) const INVALID_VALUE: i32 = 1;
pub(crate) const OUT_OF_MEMORY: i32 = 2;
pub(crate) const NOT_INITIALIZED: i32 = 3;
pub(crate) const NO_DEVICE: i32 = 100;
pub(crate) const INVALID_DEVICE: i32 = 101;
pub(crate) const INVALID_CONTEXT: i32 = 201;
pub(crate) const INVALID_HANDLE: i32 = 400;
pub(crate) const ILLEGAL_STATE: i32 = 401;
pub(crate) const NOT_READY: i32 = 600;
pub(crate) const STREAM_CAPTURE_UNSUPPORTED: i32 = 900;
pub(crate) const STREAM_CAPTURE_UNMATCHED: i32 = 903;
pub(crate) const STREAM_CAPTURE_ISOLATION: i32 = 905;
pub(crate) const CAPTURED_EVENT: i32 = 907;
pub(crate) const NOT_FOUND: i32 = 500;
pub(crate) const CONTEXT_IS_DESTROYED: i32 = 709;
pub(crate) const ALREADY_REGISTERED: i32 = 712;
pub(crate) const NOT_REGISTERED: i32 = 713;
pub(crate) const NOT_SUPPORTED: i32 = 801;

pub(crate) const MIB: usize = 1 << 20;

/// Marks the process in which a test's body runs.
const CHILD: &str = "GPUMEM_SIM_TEST_CHILD";

/// Runs a test's body in a process of its own, under these variables.
///
/// The test is called twice: first by the harness, which starts the process
/// and checks that it went well, then in that process.
pub(crate) fn isolated(test: &str, environment: &[(&str, &str)], body: impl FnOnce(&Driver)) {
    if std::env::var_os(CHILD).is_some() {
        return body(&Driver::load());
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, "1");
    command.env_remove("CUDA_VISIBLE_DEVICES");
    for name in [
        "DEVICE",
        "DEVICES",
        "MACHINE",
        "MEMORY",
        "NOTES",
        "CONTEXT",
        "DRIVER",
        "KERNEL_NS",
        "SMALL_D2H",
        "FAIL",
        "TRUTH",
        "LOG",
        "TRACE",
    ] {
        command.env_remove(format!("GPUMEM_SIM_{name}"));
    }
    let output = command.envs(environment.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{errors}");
    assert!(
        text.contains("1 passed"),
        "{test} is the name of no test:\n{text}"
    );
}

/// A file of this test run alone.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("{name}-{}", std::process::id()))
}

/// Where cargo builds the library for this test: beside it.
pub(crate) fn path() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libgpumem_sim_driver.so")
}

/// One row a function: a method that calls it.
macro_rules! driver {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The loaded library.
        pub(crate) struct Driver {
            library: Library,
        }

        // As many arguments as the functions have.
        #[allow(dead_code, clippy::too_many_arguments)]
        impl Driver {
            $(
                pub(crate) fn $name(&self, $($argument: $type),*) -> i32 {
                    // SAFETY: the symbol has this signature, and tests give it
                    // NULL, what they own or a number that is no address.
                    unsafe {
                        let symbol = concat!(stringify!($name), "\0").as_bytes();
                        let function: libloading::Symbol<
                            '_,
                            unsafe extern "C" fn($($type),*) -> i32,
                        > = self.library.get(symbol).unwrap();
                        function($($argument),*)
                    }
                }
            )*
        }
    };
}

driver! {
    cuInit(flags: u32);
    cuDriverGetVersion(out: *mut i32);
    cuGetExportTable(out: *mut u64, id: *const u8);
    cuGetErrorName(code: i32, out: *mut *const c_char);
    cuDeviceGetCount(out: *mut i32);
    cuDeviceGet(out: *mut i32, ordinal: i32);
    cuDeviceGetName(out: *mut u8, length: i32, device: i32);
    cuDeviceGetUuid_v2(out: *mut [u8; 16], device: i32);
    cuDeviceTotalMem_v2(out: *mut usize, device: i32);
    cuDeviceGetAttribute(out: *mut i32, id: i32, device: i32);
    cuDeviceGetPCIBusId(out: *mut u8, length: i32, device: i32);
    cuDevicePrimaryCtxRetain(out: *mut u64, device: i32);
    cuDevicePrimaryCtxRelease_v2(device: i32);
    cuDevicePrimaryCtxReset_v2(device: i32);
    cuDevicePrimaryCtxGetState(device: i32, flags: *mut u32, active: *mut i32);
    cuCtxCreate_v2(out: *mut u64, flags: u32, device: i32);
    cuCtxCreate_v3(out: *mut u64, affinity: u64, count: i32, flags: u32, device: i32);
    cuCtxCreate_v4(out: *mut u64, parameters: u64, flags: u32, device: i32);
    cuCtxDestroy_v2(context: u64);
    cuCtxSetCurrent(context: u64);
    cuCtxGetCurrent(out: *mut u64);
    cuCtxPushCurrent_v2(context: u64);
    cuCtxPopCurrent_v2(out: *mut u64);
    cuCtxGetDevice(out: *mut i32);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(out: *mut u64, bytes: usize);
    cuMemAllocPitch_v2(out: *mut u64, pitch: *mut usize, width: usize, height: usize, element: u32);
    cuMemAllocManaged(out: *mut u64, bytes: usize, flags: u32);
    cuMemFree_v2(address: u64);
    cuMemAllocHost_v2(out: *mut u64, bytes: usize);
    cuMemHostAlloc(out: *mut u64, bytes: usize, flags: u32);
    cuMemFreeHost(address: u64);
    cuMemHostRegister_v2(address: u64, bytes: usize, flags: u32);
    cuMemHostUnregister(address: u64);
    cuMemsetD8_v2(to: u64, value: u8, count: usize);
    cuMemsetD16_v2(to: u64, value: u16, count: usize);
    cuMemsetD32Async(to: u64, value: u32, count: usize, stream: u64);
    cuMemcpy(to: u64, from: u64, bytes: usize);
    cuMemcpyHtoD_v2(to: u64, from: *const u8, bytes: usize);
    cuMemcpyDtoH_v2(to: *mut u8, from: u64, bytes: usize);
    cuMemcpyDtoDAsync_v2_ptsz(to: u64, from: u64, bytes: usize, stream: u64);
    cuPointerGetAttribute(out: *mut u64, attribute: i32, address: u64);
    cuMemGetAddressRange_v2(start: *mut u64, bytes: *mut usize, address: u64);
    cuStreamCreate(out: *mut u64, flags: u32);
    cuStreamDestroy_v2(stream: u64);
    cuStreamSynchronize(stream: u64);
    cuStreamIsCapturing(stream: u64, out: *mut i32);
    cuStreamGetId(stream: u64, out: *mut u64);
    cuStreamGetId_ptsz(stream: u64, out: *mut u64);
    cuEventCreate(out: *mut u64, flags: u32);
    cuEventDestroy_v2(event: u64);
    cuEventRecord(event: u64, stream: u64);
    cuEventSynchronize(event: u64);
    cuEventElapsedTime(out: *mut f32, start: u64, end: u64);
    cuMemAllocAsync(out: *mut u64, bytes: usize, stream: u64);
    cuMemAllocAsync_ptsz(out: *mut u64, bytes: usize, stream: u64);
    cuMemAllocFromPoolAsync(out: *mut u64, bytes: usize, pool: u64, stream: u64);
    cuMemFreeAsync(address: u64, stream: u64);
    cuMemPoolCreate(out: *mut u64, properties: *const PoolProps);
    cuMemPoolDestroy(pool: u64);
    cuMemPoolTrimTo(pool: u64, keep: usize);
    cuMemPoolGetAttribute(pool: u64, attribute: i32, out: *mut u64);
    cuMemPoolSetAttribute(pool: u64, attribute: i32, value: *const u64);
    cuDeviceGetDefaultMemPool(out: *mut u64, device: i32);
    cuDeviceGetMemPool(out: *mut u64, device: i32);
    cuDeviceSetMemPool(device: i32, pool: u64);
    cuMemGetAllocationGranularity(out: *mut usize, properties: *const MemoryProps, option: u32);
    cuMemCreate(out: *mut u64, bytes: usize, properties: *const MemoryProps, flags: u64);
    cuMemRelease(handle: u64);
    cuMemRetainAllocationHandle(out: *mut u64, address: u64);
    cuMemAddressReserve(out: *mut u64, bytes: usize, alignment: usize, wish: u64, flags: u64);
    cuMemAddressFree(address: u64, bytes: usize);
    cuMemMap(address: u64, bytes: usize, offset: usize, handle: u64, flags: u64);
    cuMemUnmap(address: u64, bytes: usize);
    cuMemSetAccess(address: u64, bytes: usize, wishes: *const Access, count: usize);
    cuGetProcAddress(name: *const c_char, out: *mut u64, version: i32, flags: u64);
    cuGetProcAddress_v2(
        name: *const c_char, out: *mut u64, version: i32, flags: u64, status: *mut i32
    );
    cuTexRefCreate();
    gpumem_sim_processes(device: i32, out: *mut ProcessReport, room: u32);
    cuStreamQuery(stream: u64);
    cuStreamWaitEvent(stream: u64, event: u64, flags: u32);
    cuEventQuery(event: u64);
    cuStreamBeginCapture_v2(stream: u64, mode: i32);
    cuStreamEndCapture(stream: u64, out: *mut u64);
    cuStreamGetCaptureInfo_v3(
        stream: u64, status: *mut i32, id: *mut u64, graph: *mut u64,
        dependencies: *mut u64, edges: *mut u64, count: *mut usize
    );
    cuThreadExchangeStreamCaptureMode(mode: *mut i32);
    cuGraphGetNodes(graph: u64, out: *mut u64, count: *mut usize);
    cuGraphInstantiateWithFlags(out: *mut u64, graph: u64, flags: u64);
    cuGraphLaunch(executable: u64, stream: u64);
    cuGraphDestroy(graph: u64);
    cuGraphExecDestroy(executable: u64);
    cuModuleLoadData(out: *mut u64, image: *const u8);
    cuModuleUnload(module: u64);
    cuModuleGetFunction(out: *mut u64, module: u64, name: *const c_char);
    cuModuleGetGlobal_v2(out: *mut u64, bytes: *mut usize, module: u64, name: *const c_char);
    cuLibraryLoadData(
        out: *mut u64, code: *const u8, options: u64, values: u64, count: u32,
        library_options: u64, library_values: u64, library_count: u32
    );
    cuLibraryGetKernel(out: *mut u64, library: u64, name: *const c_char);
    cuLibraryUnload(library: u64);
    cuFuncGetAttribute(out: *mut i32, attribute: i32, function: u64);
    cuFuncSetAttribute(function: u64, attribute: i32, value: i32);
    cuKernelGetName(out: *mut *const c_char, kernel: u64);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(
        out: *mut i32, function: u64, threads: i32, shared: usize
    );
    cuLaunchKernel(
        function: u64, grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        shared: u32, stream: u64, arguments: *const *const i64, extra: u64
    );
    cuLaunchHostFunc(
        stream: u64, function: Option<unsafe extern "C" fn(*mut u32)>, argument: *mut u32
    );
    cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: u64);
    cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: u64);
    cuMemcpy2D_v2(parameters: *const Plane2D);
    cuMemsetD2D8_v2(to: u64, pitch: usize, value: u8, count: usize, rows: usize);
    cuPointerGetAttributes(
        count: u32, attributes: *const i32, outs: *const *mut u64, address: u64
    );
    cuIpcGetMemHandle(out: *mut IpcHandle, address: u64);
    cuIpcOpenMemHandle_v2(out: *mut u64, handle: IpcHandle, flags: u32);
    cuIpcCloseMemHandle(address: u64);
    cuDeviceCanAccessPeer(out: *mut i32, device: i32, peer: i32);
    cuStreamGetDevice(stream: u64, out: *mut i32);
    cuDeviceGetByPCIBusId(out: *mut i32, address: *const c_char);
    cuCtxGetLimit(out: *mut usize, limit: u32);
    cuCtxSetLimit(limit: u32, value: usize);
    cuArrayCreate_v2();
    gpumem_sim_truth(path: *const c_char);
}

/// A process that has memory of a device.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessReport {
    pub(crate) pid: u32,
    reserved: u32,
    pub(crate) charged_bytes: u64,
}

/// `CUipcMemHandle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct IpcHandle(pub(crate) [u8; 64]);

/// One side of `CUDA_MEMCPY2D`.
#[repr(C)]
pub(crate) struct Side2D {
    x_bytes: usize,
    y: usize,
    kind: u64,
    host: u64,
    device: u64,
    array: u64,
    pitch_bytes: usize,
}

impl Side2D {
    /// By the host's address.
    pub(crate) fn host(address: *mut u8, pitch_bytes: usize) -> Self {
        Self {
            x_bytes: 0,
            y: 0,
            kind: 1,
            host: address as u64,
            device: 0,
            array: 0,
            pitch_bytes,
        }
    }

    /// By the device's address, from a place on.
    pub(crate) fn device(address: u64, pitch_bytes: usize, (x_bytes, y): (usize, usize)) -> Self {
        Self {
            x_bytes,
            y,
            kind: 2,
            host: 0,
            device: address,
            array: 0,
            pitch_bytes,
        }
    }
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
pub(crate) struct Plane2D {
    pub(crate) from: Side2D,
    pub(crate) to: Side2D,
    pub(crate) row_bytes: usize,
    pub(crate) rows: usize,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) kind: i32,
    pub(crate) id: i32,
}

/// A device's location.
pub(crate) const fn on(device: i32) -> Location {
    Location {
        kind: 1,
        id: device,
    }
}

/// `CUmemAllocationProp`.
#[repr(C)]
pub(crate) struct MemoryProps {
    kind: u32,
    handle_types: u32,
    location: Location,
    metadata: u64,
    flags: [u8; 8],
}

impl MemoryProps {
    pub(crate) fn new(location: Location) -> Self {
        Self {
            kind: 1,
            handle_types: 0,
            location,
            metadata: 0,
            flags: [0; 8],
        }
    }
}

/// `CUmemPoolProps`.
#[repr(C)]
pub(crate) struct PoolProps {
    kind: u32,
    handle_types: u32,
    location: Location,
    security: u64,
    max_bytes: usize,
    reserved: [u8; 56],
}

impl PoolProps {
    pub(crate) fn new(device: i32, max_bytes: usize) -> Self {
        Self {
            kind: 1,
            handle_types: 0,
            location: on(device),
            security: 0,
            max_bytes,
            reserved: [0; 56],
        }
    }
}

/// `CUmemAccessDesc`.
#[repr(C)]
pub(crate) struct Access {
    pub(crate) location: Location,
    pub(crate) flags: u32,
}

/// The answer of a call that must succeed.
pub(crate) fn get<T: Default>(call: impl FnOnce(&mut T) -> i32) -> T {
    let mut value = T::default();
    assert_eq!(call(&mut value), SUCCESS);
    value
}

impl Driver {
    fn load() -> Self {
        // SAFETY: the library runs no code when it is loaded.
        let library = unsafe { Library::new(path()) };
        Self {
            library: library.unwrap(),
        }
    }

    /// The address of an exported function.
    pub(crate) fn export(&self, symbol: &str) -> u64 {
        // SAFETY: the address is only compared.
        let found = unsafe {
            self.library
                .get::<unsafe extern "C" fn()>(symbol.as_bytes())
        };
        found.map_or(0, |function| *function as usize as u64)
    }

    /// Calls a function that looks at no parameter.
    pub(crate) fn call(&self, symbol: &str) -> i32 {
        // SAFETY: the function has no parameters, as far as it is concerned.
        unsafe {
            let function = self
                .library
                .get::<unsafe extern "C" fn() -> i32>(symbol.as_bytes());
            function.unwrap()()
        }
    }

    /// Starts the driver with the primary context of device 0 current.
    pub(crate) fn start(&self) -> u64 {
        assert_eq!(self.cuInit(0), SUCCESS);
        let context = get(|out| self.cuDevicePrimaryCtxRetain(out, 0));
        assert_eq!(self.cuCtxSetCurrent(context), SUCCESS);
        context
    }

    /// Device memory that must be had.
    pub(crate) fn alloc(&self, bytes: usize) -> u64 {
        get(|out| self.cuMemAlloc_v2(out, bytes))
    }

    /// What is taken of the current device.
    pub(crate) fn used(&self) -> usize {
        let (mut free, mut total) = (0, 0);
        assert_eq!(self.cuMemGetInfo_v2(&mut free, &mut total), SUCCESS);
        total - free
    }

    /// The processes that have memory of device 0: id and bytes.
    pub(crate) fn processes(&self) -> Vec<(u32, u64)> {
        self.processes_on(0)
    }

    /// The same of the device of any number of the machine's.
    pub(crate) fn processes_on(&self, number: i32) -> Vec<(u32, u64)> {
        let mut reports = [ProcessReport::default(); 8];
        let count = self.gpumem_sim_processes(number, reports.as_mut_ptr(), 8);
        reports[..count as usize]
            .iter()
            .map(|report| (report.pid, report.charged_bytes))
            .collect()
    }

    /// The truth of now.
    pub(crate) fn truth(&self) -> Value {
        let path = scratch("truth");
        let name = CString::new(path.to_str().unwrap()).unwrap();
        assert_eq!(self.gpumem_sim_truth(name.as_ptr()), 0);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The live objects of a kind.
    pub(crate) fn live(&self, kind: &str) -> Vec<Value> {
        let truth = self.truth();
        let live = truth["live"].as_array().unwrap();
        live.iter()
            .filter(|object| object["kind"] == kind)
            .cloned()
            .collect()
    }
}
