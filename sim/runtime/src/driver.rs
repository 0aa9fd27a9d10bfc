//! The driver beneath: opened and looked up as runtimes do.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{self, Outcome};

/// A device address, or any other handle of the driver's.
pub(crate) type Handle = u64;

/// Most devices whose contexts are kept.
const MAX_DEVICES: usize = 64;

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> i32;

/// One row a function: name, the version that it is looked up at, parameters.
macro_rules! driver {
    ($($name:ident $version:literal ($($arg:ident: $ty:ty),* $(,)?);)*) => {
        /// The functions of the driver; each answers its error.
        pub(crate) struct Driver {
            get_proc_address: GetProcAddress,
            $($name: Option<unsafe extern "C" fn($($ty),*) -> i32>,)*
        }

        impl Driver {
            fn look_up(get_proc_address: GetProcAddress) -> Self {
                Self {
                    get_proc_address,
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let found = address(get_proc_address, name, $version);
                        // SAFETY: under this name and version a driver has a
                        // function of this signature; NULL is `None`.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                Option<unsafe extern "C" fn($($ty),*) -> i32>,
                            >(found)
                        }
                    },)*
                }
            }

            $(
                // As many parameters as the driver's functions have.
                #[allow(clippy::too_many_arguments)]
                pub(crate) unsafe fn $name(&self, $($arg: $ty),*) -> Outcome {
                    let function = self.$name.ok_or(error::NOT_FOUND)?;
                    // SAFETY: the caller vouches for the parameters.
                    match unsafe { function($($arg),*) } {
                        0 => Ok(()),
                        code => Err(code),
                    }
                }
            )*
        }
    };
}

driver! {
    cuInit 2000 (flags: u32);
    cuDriverGetVersion 2020 (out: *mut i32);
    cuDeviceGetCount 2000 (out: *mut i32);
    cuDeviceGetName 2000 (out: *mut c_char, length: i32, device: i32);
    cuDeviceGetUuid 11040 (out: *mut [u8; 16], device: i32);
    cuDeviceTotalMem 3020 (out: *mut usize, device: i32);
    cuDeviceGetAttribute 2000 (out: *mut i32, attribute: i32, device: i32);
    cuDeviceGetPCIBusId 4010 (out: *mut c_char, length: i32, device: i32);
    cuDeviceGetByPCIBusId 4010 (out: *mut i32, address: *const c_char);
    cuDeviceCanAccessPeer 4000 (out: *mut i32, device: i32, peer: i32);
    cuDeviceGetP2PAttribute 8000 (out: *mut i32, attribute: i32, device: i32, peer: i32);
    cuDevicePrimaryCtxRetain 7000 (out: *mut Handle, device: i32);
    cuDevicePrimaryCtxReset 11000 (device: i32);
    cuCtxSetCurrent 4000 (context: Handle);
    cuCtxGetCurrent 4000 (out: *mut Handle);
    cuCtxGetDevice 2000 (out: *mut i32);
    cuCtxSynchronize 2000 ();
    cuCtxGetStreamPriorityRange 5050 (least: *mut i32, greatest: *mut i32);
    cuCtxGetLimit 3010 (out: *mut usize, limit: i32);
    cuCtxSetLimit 3010 (limit: i32, value: usize);
    cuMemGetInfo 3020 (free: *mut usize, total: *mut usize);
    cuMemAlloc 3020 (out: *mut Handle, bytes: usize);
    cuMemAllocPitch 3020 (out: *mut Handle, pitch: *mut usize, width: usize, height: usize, element: u32);
    cuMemAllocManaged 6000 (out: *mut Handle, bytes: usize, flags: u32);
    cuMemFree 3020 (address: Handle);
    cuMemHostAlloc 2020 (out: *mut Handle, bytes: usize, flags: u32);
    cuMemFreeHost 2000 (address: Handle);
    cuMemHostRegister 6050 (address: Handle, bytes: usize, flags: u32);
    cuMemHostUnregister 4000 (address: Handle);
    cuMemHostGetDevicePointer 3020 (out: *mut Handle, address: Handle, flags: u32);
    cuMemHostGetFlags 2030 (out: *mut u32, address: Handle);
    cuPointerGetAttributes 7000 (count: u32, attributes: *const i32, outs: *const *mut c_void, address: Handle);
    cuMemcpy 4000 (to: Handle, from: Handle, bytes: usize);
    cuMemcpyAsync 4000 (to: Handle, from: Handle, bytes: usize, stream: Handle);
    cuMemcpyHtoD 3020 (to: Handle, from: Handle, bytes: usize);
    cuMemcpyHtoDAsync 3020 (to: Handle, from: Handle, bytes: usize, stream: Handle);
    cuMemcpyDtoH 3020 (to: Handle, from: Handle, bytes: usize);
    cuMemcpyDtoHAsync 3020 (to: Handle, from: Handle, bytes: usize, stream: Handle);
    cuMemcpyPeer 4000 (to: Handle, to_context: Handle, from: Handle, from_context: Handle, bytes: usize);
    cuMemcpyPeerAsync 4000 (to: Handle, to_context: Handle, from: Handle, from_context: Handle, bytes: usize, stream: Handle);
    cuMemcpy2D 3020 (parameters: *const crate::copy::Planes);
    cuMemcpy2DAsync 3020 (parameters: *const crate::copy::Planes, stream: Handle);
    cuMemsetD8 3020 (to: Handle, value: u8, count: usize);
    cuMemsetD8Async 3020 (to: Handle, value: u8, count: usize, stream: Handle);
    cuMemsetD2D8Async 3020 (to: Handle, pitch: usize, value: u8, count: usize, rows: usize, stream: Handle);
    cuMemAllocAsync 11020 (out: *mut Handle, bytes: usize, stream: Handle);
    cuMemAllocFromPoolAsync 11020 (out: *mut Handle, bytes: usize, pool: Handle, stream: Handle);
    cuMemFreeAsync 11020 (address: Handle, stream: Handle);
    cuDeviceGetDefaultMemPool 11020 (out: *mut Handle, device: i32);
    cuDeviceGetMemPool 11020 (out: *mut Handle, device: i32);
    cuDeviceSetMemPool 11020 (device: i32, pool: Handle);
    cuMemPoolCreate 11020 (out: *mut Handle, properties: *const c_void);
    cuMemPoolDestroy 11020 (pool: Handle);
    cuMemPoolTrimTo 11020 (pool: Handle, keep: usize);
    cuMemPoolSetAttribute 11020 (pool: Handle, attribute: i32, value: *mut c_void);
    cuMemPoolGetAttribute 11020 (pool: Handle, attribute: i32, value: *mut c_void);
    cuMemPoolSetAccess 11020 (pool: Handle, wishes: *const c_void, count: usize);
    cuStreamCreate 2000 (out: *mut Handle, flags: u32);
    cuStreamCreateWithPriority 5050 (out: *mut Handle, flags: u32, priority: i32);
    cuStreamDestroy 4000 (stream: Handle);
    cuStreamSynchronize 2000 (stream: Handle);
    cuStreamQuery 2000 (stream: Handle);
    cuStreamWaitEvent 3020 (stream: Handle, event: Handle, flags: u32);
    cuStreamGetPriority 5050 (stream: Handle, out: *mut i32);
    cuStreamGetFlags 5050 (stream: Handle, out: *mut u32);
    cuStreamGetId 12000 (stream: Handle, out: *mut u64);
    cuStreamIsCapturing 10000 (stream: Handle, out: *mut i32);
    cuStreamGetCaptureInfo 12030 (stream: Handle, status: *mut i32, id: *mut u64, graph: *mut Handle, dependencies: *mut Handle, edges: *mut Handle, count: *mut usize);
    cuStreamBeginCapture 10010 (stream: Handle, mode: i32);
    cuStreamBeginCaptureToGraph 12030 (stream: Handle, graph: Handle, dependencies: Handle, edges: Handle, count: usize, mode: i32);
    cuStreamEndCapture 10000 (stream: Handle, out: *mut Handle);
    cuThreadExchangeStreamCaptureMode 10010 (mode: *mut i32);
    cuStreamAddCallback 5000 (stream: Handle, function: Handle, argument: Handle, flags: u32);
    cuLaunchHostFunc 10000 (stream: Handle, function: Handle, argument: Handle);
    cuEventCreate 2000 (out: *mut Handle, flags: u32);
    cuEventDestroy 4000 (event: Handle);
    cuEventRecord 2000 (event: Handle, stream: Handle);
    cuEventRecordWithFlags 11010 (event: Handle, stream: Handle, flags: u32);
    cuEventQuery 2000 (event: Handle);
    cuEventSynchronize 2000 (event: Handle);
    cuEventElapsedTime 2000 (out: *mut f32, start: Handle, end: Handle);
    cuIpcGetMemHandle 4010 (out: *mut crate::ipc::Name, address: Handle);
    cuIpcOpenMemHandle 11000 (out: *mut Handle, name: crate::ipc::Name, flags: u32);
    cuIpcCloseMemHandle 4010 (address: Handle);
    cuIpcGetEventHandle 4010 (out: *mut crate::ipc::Name, event: Handle);
    cuIpcOpenEventHandle 4010 (out: *mut Handle, name: crate::ipc::Name);
    cuGraphCreate 10000 (out: *mut Handle, flags: u32);
    cuGraphDestroy 10000 (graph: Handle);
    cuGraphInstantiateWithFlags 11040 (out: *mut Handle, graph: Handle, flags: u64);
    cuGraphExecDestroy 10000 (executable: Handle);
    cuGraphLaunch 10000 (executable: Handle, stream: Handle);
    cuGraphUpload 11010 (executable: Handle, stream: Handle);
    cuGraphGetNodes 10000 (graph: Handle, out: *mut Handle, count: *mut usize);
    cuDeviceGraphMemTrim 11040 (device: i32);
    cuDeviceGetGraphMemAttribute 11040 (device: i32, attribute: i32, out: *mut c_void);
    cuLibraryLoadData 12000 (out: *mut Handle, code: *const c_void, options: Handle, values: Handle, count: u32, library_options: Handle, library_values: Handle, library_count: u32);
    cuLibraryGetKernel 12000 (out: *mut Handle, library: Handle, name: *const c_char);
    cuLibraryGetGlobal 12000 (address: *mut Handle, bytes: *mut usize, library: Handle, name: *const c_char);
    cuKernelGetAttribute 12000 (out: *mut i32, attribute: i32, kernel: Handle, device: i32);
    cuKernelSetAttribute 12000 (attribute: i32, value: i32, kernel: Handle, device: i32);
    cuLaunchKernel 4000 (kernel: Handle, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32, shared: u32, stream: Handle, arguments: *mut *mut c_void, extra: Handle);
    cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 (out: *mut i32, kernel: Handle, threads: i32, shared: usize, flags: u32);
    cuProfilerStart 4000 ();
    cuProfilerStop 4000 ();
}

/// A function of the driver, or NULL.
fn address(get_proc_address: GetProcAddress, name: &str, version: i32) -> *mut c_void {
    let (mut found, mut why) = (std::ptr::null_mut(), 0);
    // SAFETY: the name is zero-ended, and both answers have room.
    let result =
        unsafe { get_proc_address(name.as_ptr().cast(), &mut found, version, 0, &mut why) };
    if result == 0 {
        found
    } else {
        std::ptr::null_mut()
    }
}

/// The started driver and its number of devices, or why there is none.
fn load() -> Outcome<&'static (Driver, i32)> {
    static LOADED: OnceLock<Outcome<(Driver, i32)>> = OnceLock::new();
    LOADED.get_or_init(start).as_ref().map_err(|code| *code)
}

fn start() -> Outcome<(Driver, i32)> {
    // SAFETY: zero-ended names; the library stays for the life of the process.
    let found = unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return Err(error::NO_DRIVER);
        }
        libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr())
    };
    // SAFETY: a driver's function of this name has this signature.
    let get_proc_address =
        unsafe { std::mem::transmute::<*mut c_void, Option<GetProcAddress>>(found) };
    let driver = Driver::look_up(get_proc_address.ok_or(error::NO_DRIVER)?);
    let mut devices = 0;
    // SAFETY: the answer has room.
    unsafe {
        driver.cuInit(0)?;
        driver.cuDeviceGetCount(&mut devices)?;
    }
    if devices == 0 {
        return Err(error::NO_DEVICE);
    }
    Ok((driver, devices))
}

std::thread_local! {
    static DEVICE: Cell<i32> = const { Cell::new(0) };
}

/// The primary contexts that are held, by device; 0 is none.
static CONTEXTS: [AtomicU64; MAX_DEVICES] = [const { AtomicU64::new(0) }; MAX_DEVICES];

impl Driver {
    /// Looks up any function of the driver for the program: its address and
    /// what the driver says about it.
    pub(crate) unsafe fn look_up_for_program(
        &self,
        name: *const c_char,
        version: i32,
        flags: u64,
    ) -> (*mut c_void, i32) {
        let (mut found, mut why) = (std::ptr::null_mut(), 1);
        // SAFETY: the caller vouches for the name; both answers have room.
        let result = unsafe { (self.get_proc_address)(name, &mut found, version, flags, &mut why) };
        if result == 0 {
            (found, why)
        } else {
            (std::ptr::null_mut(), 1)
        }
    }

    /// A device's primary context, retained the first time.
    pub(crate) fn context(&self, device: i32) -> Outcome<Handle> {
        let slot = usize::try_from(device)
            .ok()
            .and_then(|index| CONTEXTS.get(index));
        let slot = slot.ok_or(error::INVALID_DEVICE)?;
        // Relaxed: the handle is a number that the driver checks under its own
        // lock; nothing else is published by it.
        let known = slot.load(Ordering::Relaxed);
        if known != 0 {
            return Ok(known);
        }
        let mut context = 0;
        // SAFETY: the answer has room.
        unsafe { self.cuDevicePrimaryCtxRetain(&mut context, device)? };
        // Relaxed: as above. Two threads that race get the same handle.
        slot.store(context, Ordering::Relaxed);
        Ok(context)
    }

    /// Forgets a context that was reset, so that the next use wakes it.
    fn forget_context(&self, device: i32) {
        let slot = usize::try_from(device)
            .ok()
            .and_then(|index| CONTEXTS.get(index));
        if let Some(slot) = slot {
            // Relaxed: as in `context`.
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// Ends the context of the thread's device and all that is in it.
    pub(crate) fn reset(&self) -> Outcome {
        let device = self.device();
        self.forget_context(device);
        // SAFETY: no context is current any more, and the driver checks the device.
        unsafe {
            self.cuCtxSetCurrent(0)
                .and(self.cuDevicePrimaryCtxReset(device))
        }
    }

    /// Makes a device the thread's, with its context current.
    pub(crate) fn choose(&self, device: i32) -> Outcome {
        if !(0..load()?.1).contains(&device) {
            return Err(error::INVALID_DEVICE);
        }
        DEVICE.set(device);
        let context = self.context(device)?;
        // SAFETY: a handle of the driver's.
        unsafe { self.cuCtxSetCurrent(context) }
    }

    /// The thread's device: that of its context, else the one that it chose.
    pub(crate) fn device(&self) -> i32 {
        let (mut context, mut device) = (0, 0);
        // SAFETY: the answers have room.
        unsafe {
            let asked = self.cuCtxGetCurrent(&mut context);
            if asked.is_ok() && context != 0 && self.cuCtxGetDevice(&mut device).is_ok() {
                return device;
            }
        }
        DEVICE.get()
    }

    fn make_current(&self) -> Outcome {
        let mut context = 0;
        // SAFETY: the answer has room.
        unsafe { self.cuCtxGetCurrent(&mut context)? };
        if context == 0 {
            self.choose(DEVICE.get())
        } else {
            Ok(())
        }
    }
}

/// How many devices there are.
pub(crate) fn device_count() -> Outcome<i32> {
    Ok(load()?.1)
}

/// Runs a call that needs the driver.
pub(crate) fn loaded(body: impl FnOnce(&Driver) -> Outcome) -> i32 {
    error::number(load().and_then(|(driver, _)| body(driver)))
}

/// Runs a call that needs the thread's device.
pub(crate) fn current(body: impl FnOnce(&Driver) -> Outcome) -> i32 {
    loaded(|driver| {
        driver.make_current()?;
        body(driver)
    })
}

/// Runs a call that needs no driver.
pub(crate) fn free(body: impl FnOnce(()) -> Outcome) -> i32 {
    error::number(body(()))
}

/// Runs a call whose answer is a number as it is.
pub(crate) fn query(body: impl FnOnce(()) -> i32) -> i32 {
    body(())
}
