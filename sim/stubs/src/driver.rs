//! The driver beneath, found by own look-ups, as NCCL does.

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut *mut c_void, i32, u64, *mut i32) -> i32;
type CopyAsync = unsafe extern "C" fn(usize, usize, usize, usize) -> i32;
type Device = unsafe extern "C" fn(*mut i32) -> i32;
type Allocate = unsafe extern "C" fn(*mut usize, usize) -> i32;
type Free = unsafe extern "C" fn(usize) -> i32;

/// What is needed of the driver.
pub(crate) struct Driver {
    copy: CopyAsync,
    device: Device,
    allocate: Allocate,
    free: Free,
}

/// The driver, if it can be loaded.
pub(crate) fn get() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    // SAFETY: zero-ended names; the library stays for the life of the process,
    // and its functions of these names and versions have these signatures.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        if library.is_null() {
            return None;
        }
        let found = libc::dlsym(library, c"cuGetProcAddress_v2".as_ptr());
        let look_up = std::mem::transmute::<*mut c_void, Option<GetProcAddress>>(found)?;
        let find = |name: *const c_char, version| {
            let (mut found, mut why) = (std::ptr::null_mut(), 0);
            look_up(name, &mut found, version, 0, &mut why);
            found
        };
        Some(Driver {
            copy: std::mem::transmute::<*mut c_void, Option<CopyAsync>>(find(
                c"cuMemcpyAsync".as_ptr(),
                4000,
            ))?,
            device: std::mem::transmute::<*mut c_void, Option<Device>>(find(
                c"cuCtxGetDevice".as_ptr(),
                2000,
            ))?,
            allocate: std::mem::transmute::<*mut c_void, Option<Allocate>>(find(
                c"cuMemAlloc".as_ptr(),
                3020,
            ))?,
            free: std::mem::transmute::<*mut c_void, Option<Free>>(find(
                c"cuMemFree".as_ptr(),
                3020,
            ))?,
        })
    }
}

impl Driver {
    /// Copies on a stream; whether that went well.
    pub(crate) fn copy(&self, to: usize, from: usize, bytes: usize, stream: usize) -> bool {
        // SAFETY: the driver checks what it knows; the rest is the program's,
        // who vouches for it.
        bytes == 0 || to == from || unsafe { (self.copy)(to, from, bytes, stream) } == 0
    }

    /// The device of the thread's context; the first where there is none.
    pub(crate) fn device(&self) -> i32 {
        let mut device = 0;
        // SAFETY: the answer has room.
        let asked = unsafe { (self.device)(&mut device) };
        if asked == 0 { device } else { 0 }
    }

    /// Device memory.
    pub(crate) fn allocate(&self, bytes: usize) -> Option<usize> {
        let mut address = 0;
        // SAFETY: the answer has room.
        let result = unsafe { (self.allocate)(&mut address, bytes) };
        (result == 0).then_some(address)
    }

    /// Gives it back; whether it was there.
    pub(crate) fn free(&self, address: usize) -> bool {
        // SAFETY: the driver checks the address.
        unsafe { (self.free)(address) == 0 }
    }
}
