//! The simulated runtime over the simulated driver, as a program sees it.

// The functions bear the runtime's names.
#![allow(non_snake_case)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

const MIB: usize = 1 << 20;

/// A library that cargo has built beside this test.
fn beside(name: &str) -> PathBuf {
    std::env::current_exe().unwrap().with_file_name(name)
}

/// The libraries of the two versions.
const THIRTEEN: &str = "libgpumem_sim_runtime.so";
const TWELVE: &str = "libgpumem_sim_runtime12.so";

/// The runtime, with the driver where it finds it: already loaded.
struct Runtime {
    library: Library,
    _driver: Library,
}

impl Runtime {
    fn load() -> Self {
        Self::load_version(THIRTEEN)
    }

    fn load_version(runtime: &str) -> Self {
        // SAFETY: neither library runs code of consequence when it is loaded.
        let open = |name| unsafe { Library::open(Some(beside(name)), RTLD_NOW | RTLD_GLOBAL) };
        Self {
            _driver: open("libgpumem_sim_driver.so").unwrap(),
            library: open(runtime).unwrap(),
        }
    }

    fn symbol<T: Copy>(&self, name: &str) -> T {
        // SAFETY: the callers give the signature that the name has.
        unsafe { *self.library.get::<T>(name.as_bytes()).unwrap() }
    }
}

/// Methods that call a function by its name.
macro_rules! calls {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        impl Runtime {
            $(fn $name(&self, $($arg: $ty),*) -> i32 {
                let function: unsafe extern "C" fn($($ty),*) -> i32 = self.symbol(stringify!($name));
                // SAFETY: tests give NULL, what they own, or a number that is
                // no address.
                unsafe { function($($arg),*) }
            })*
        }
    };
}

calls! {
    cudaGetDeviceCount(out: *mut i32);
    cudaSetDevice(device: i32);
    cudaGetDeviceProperties(out: *mut u8, device: i32);
    cudaGetDeviceProperties_v2(out: *mut u8, device: i32);
    cudaMalloc(out: *mut u64, bytes: usize);
    cudaFree(address: u64);
    cudaMemGetInfo(free: *mut usize, total: *mut usize);
    cudaMemcpy(to: u64, from: u64, bytes: usize, kind: i32);
    cudaMemset(to: u64, value: i32, bytes: usize);
    cudaGetLastError();
    cudaPeekAtLastError();
    cudaMallocArray();
    cudaLaunchKernel(stand_in: *const u8, grid: [u32; 3], block: [u32; 3], arguments: u64, shared: usize, stream: u64);
    cudaGetSymbolAddress(out: *mut u64, stand_in: *const u8);
    cudaGetSymbolSize(out: *mut usize, stand_in: *const u8);
    cudaPointerGetAttributes(out: *mut [u64; 4], address: u64);
    cudaGetDriverEntryPointByVersion(name: *const c_char, out: *mut *mut c_void, version: u32, flags: u64, status: *mut i32);
}

#[test]
fn memory_is_the_drivers() {
    let runtime = Runtime::load();
    let mut address = 7;
    assert_eq!(runtime.cudaMalloc(&mut address, 0), 0);
    assert_eq!(address, 0);
    let (mut before, mut after, mut total) = (0, 0, 0);
    assert_eq!(runtime.cudaMemGetInfo(&mut before, &mut total), 0);
    assert_eq!(runtime.cudaMalloc(&mut address, 1024 * MIB), 0);
    assert_eq!(runtime.cudaMemGetInfo(&mut after, &mut total), 0);
    // Other tests of this process may run meanwhile, and take and give back much less.
    assert!(before >= after + 512 * MIB, "{before} {after}");

    assert_eq!(runtime.cudaMemset(address, 0x105, 4), 0);
    let mut back = [0_u8; 4];
    let host = back.as_mut_ptr() as u64;
    assert_eq!(runtime.cudaMemcpy(host, address, 4, 2), 0);
    assert_eq!(back, [5; 4]);
    assert_eq!(runtime.cudaMemcpy(host, address, 4, 9), 1);

    let mut attributes = [0; 4];
    assert_eq!(
        runtime.cudaPointerGetAttributes(&mut attributes, address),
        0
    );
    assert_eq!(attributes[..2], [2, address], "a device's, of device 0");
    assert_eq!(runtime.cudaPointerGetAttributes(&mut attributes, host), 0);
    assert_eq!(
        attributes[0],
        (-2_i32 as u32 as u64) << 32,
        "not known, of no device"
    );
    assert_eq!(runtime.cudaFree(address), 0);
    assert_eq!(runtime.cudaFree(address), 1);
}

#[test]
fn the_last_error_is_the_threads_own() {
    let runtime = Runtime::load();
    assert_eq!(runtime.cudaGetLastError(), 0);
    assert_eq!(runtime.cudaSetDevice(99), 101);
    assert_eq!(runtime.cudaPeekAtLastError(), 101);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| runtime.cudaPeekAtLastError());
        assert_eq!(other.join().unwrap(), 0);
    });
    assert_eq!(runtime.cudaGetLastError(), 101);
    assert_eq!(runtime.cudaGetLastError(), 0);
    // What is not simulated is there, and says so.
    assert_eq!(runtime.cudaMallocArray(), 801);
    let text: unsafe extern "C" fn(i32) -> *const c_char = runtime.symbol("cudaGetErrorString");
    // SAFETY: the answer lives for ever.
    let text = unsafe { CStr::from_ptr(text(801)) };
    assert!(text.to_str().unwrap().contains("simulated"));
}

/// The `int` at a place of a structure.
fn number(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap())
}

#[test]
fn a_device_has_the_properties_of_the_version() {
    let thirteen = Runtime::load();
    let mut count = 0;
    assert_eq!(thirteen.cudaGetDeviceCount(&mut count), 0);
    assert_eq!(count, 1);
    let mut properties = [1_u8; 1040];
    let out = properties.as_mut_ptr();
    assert_eq!(thirteen.cudaGetDeviceProperties(out, 0), 0);
    let name = CStr::from_bytes_until_nul(&properties).unwrap();
    assert!(name.to_str().unwrap().contains("simulated"));
    // Major version and multiprocessors (`driver_types.h`), and nothing behind
    // the structure.
    assert_eq!(number(&properties, 360), 9);
    assert_eq!(number(&properties, 384), 132);
    assert_eq!(properties[1008..], [1; 32]);

    let twelve = Runtime::load_version(TWELVE);
    let mut properties = [1_u8; 1040];
    let out = properties.as_mut_ptr();
    assert_eq!(twelve.cudaGetDeviceProperties_v2(out, 0), 0);
    assert_eq!(
        (number(&properties, 360), number(&properties, 388)),
        (9, 132)
    );
    assert_eq!(
        number(&properties, 728),
        1,
        "memory of the host can be pinned"
    );
    assert_eq!(properties[1032..], [1; 8]);
}

#[test]
fn what_is_looked_up_without_a_number_is_older_in_12() {
    let twelve = Runtime::load_version(TWELVE);
    let mut properties = [7_u8; 1040];
    let out = properties.as_mut_ptr();
    assert_eq!(twelve.cudaGetDeviceProperties(out, 0), 0);
    assert_eq!(
        (number(&properties, 360), number(&properties, 388)),
        (9, 132)
    );
    assert_eq!(properties[728..], [7; 312], "the structure of 11 ends here");

    // Three parameters: a seventh of 13 would be whatever lies on the stack.
    let capture: unsafe extern "C" fn(u64, *mut i32, *mut u64) -> i32 =
        twelve.symbol("cudaStreamGetCaptureInfo");
    let (mut stream, mut status, mut id) = (0, 7, 7);
    let create: unsafe extern "C" fn(*mut u64) -> i32 = twelve.symbol("cudaStreamCreate");
    // SAFETY: the answers have room.
    unsafe {
        assert_eq!(create(&mut stream), 0);
        assert_eq!(capture(stream, &mut status, &mut id), 0);
    }
    assert_eq!(status, 0);
}

#[test]
fn a_version_has_its_own_names() {
    let names = |text: &'static str| text.lines().collect::<std::collections::BTreeSet<_>>();
    let lists = [
        names(include_str!("names/12.txt")),
        names(include_str!("names/13.txt")),
    ];
    for (library, own, other) in [(TWELVE, 0, 1), (THIRTEEN, 1, 0)] {
        let runtime = Runtime::load_version(library);
        // SAFETY: the symbol is only looked up.
        let has = |name: &str| unsafe { runtime.library.get::<usize>(name.as_bytes()) }.is_ok();
        let missing: Vec<_> = lists[own].iter().filter(|name| !has(name)).collect();
        assert!(missing.is_empty(), "{library} has no {missing:?}");
        let foreign: Vec<_> = lists[other]
            .difference(&lists[own])
            .filter(|name| has(name))
            .collect();
        assert!(foreign.is_empty(), "{library} has {foreign:?}");
    }
}

#[test]
fn no_stream_is_the_threads_own_where_programs_were_compiled_so() {
    let runtime = Runtime::load();
    let fill: unsafe extern "C" fn(u64, i32, usize, u64) -> i32 =
        runtime.symbol("cudaMemsetAsync_ptsz");
    let copy: unsafe extern "C" fn(u64, u64, usize, i32) -> i32 = runtime.symbol("cudaMemcpy_ptds");
    let (mut address, mut back) = (0, [0_u8; 4]);
    assert_eq!(runtime.cudaMalloc(&mut address, MIB), 0);
    // SAFETY: memory of this test.
    unsafe {
        assert_eq!(fill(address, 5, 4, 0), 0);
        assert_eq!(copy(back.as_mut_ptr() as u64, address, 4, 2), 0);
    }
    assert_eq!(back, [5; 4]);
    assert_eq!(runtime.cudaFree(address), 0);
}

#[test]
fn what_is_registered_can_be_launched() {
    let runtime = Runtime::load();
    let (kernel, variable) = (1_u8, 2_u8);
    let register: extern "C" fn(*const c_char) -> u64 = runtime.symbol("__cudaRegisterFatBinary");
    let container = register(c"image".as_ptr());
    let add: unsafe extern "C" fn(u64, *const u8, u64, *const c_char) =
        runtime.symbol("__cudaRegisterFunction");
    let add_variable: unsafe extern "C" fn(u64, *const u8, u64, *const c_char, i32, usize) =
        runtime.symbol("__cudaRegisterVar");
    // SAFETY: names that live for ever.
    unsafe {
        add(container, &kernel, 0, c"add".as_ptr());
        add_variable(container, &variable, 0, c"scale".as_ptr(), 0, 12);
    }
    let launch =
        |stand_in: &u8, block| runtime.cudaLaunchKernel(stand_in, [1, 1, 1], block, 0, 0, 0);
    assert_eq!(launch(&kernel, [32, 1, 1]), 0);
    assert_eq!(launch(&kernel, [0, 1, 1]), 1);
    assert_eq!(launch(&variable, [32, 1, 1]), 98);
    let (mut address, mut bytes) = (0, 0);
    assert_eq!(runtime.cudaGetSymbolAddress(&mut address, &variable), 0);
    assert_eq!(runtime.cudaGetSymbolSize(&mut bytes, &variable), 0);
    assert_ne!(address, 0);
    assert_eq!(bytes, 12);
    assert_eq!(runtime.cudaGetSymbolAddress(&mut address, &kernel), 13);
    let unregister: extern "C" fn(u64) = runtime.symbol("__cudaUnregisterFatBinary");
    unregister(container);
    assert_eq!(launch(&kernel, [32, 1, 1]), 98);
}

#[test]
fn functions_of_the_driver_are_found() {
    let runtime = Runtime::load();
    let look_up = |name: &str| {
        let name = CString::new(name).unwrap();
        let (mut found, mut status) = (std::ptr::null_mut(), 7);
        let result = runtime.cudaGetDriverEntryPointByVersion(
            name.as_ptr(),
            &mut found,
            12_000,
            0,
            &mut status,
        );
        (result, found.is_null(), status)
    };
    assert_eq!(look_up("cuMemAlloc"), (0, false, 0));
    assert_eq!(look_up("cuNothing"), (0, true, 1));
    assert_eq!(look_up("cuLogsCurrent"), (0, true, 2));
}

#[test]
fn each_version_is_stated_to_its_programs() {
    // By the version of the symbol, as a linked program finds it.
    let state = |library: &str, version: &CStr| {
        let runtime = Runtime::load_version(library);
        let path = CString::new(beside(library).to_str().unwrap()).unwrap();
        let mut out = 0;
        // SAFETY: zero-ended names; the library is loaded already, and the
        // function has this signature in both versions.
        unsafe {
            let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
            let found = libc::dlvsym(library, c"cudaRuntimeGetVersion".as_ptr(), version.as_ptr());
            assert!(!found.is_null());
            let function: unsafe extern "C" fn(*mut i32) -> i32 = std::mem::transmute(found);
            assert_eq!(function(&mut out), 0);
        }
        drop(runtime);
        out
    };
    assert_eq!(state(TWELVE, c"libcudart.so.12") / 1000, 12);
    assert_eq!(state(THIRTEEN, c"libcudart.so.13") / 1000, 13);
}
