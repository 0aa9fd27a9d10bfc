//! The simulated management library beside the simulated driver.

use std::ffi::{CStr, c_char};
use std::path::PathBuf;

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

const MIB: u64 = 1 << 20;

/// A library that cargo has built beside this test, open.
fn open(name: &str) -> Library {
    let path: PathBuf = std::env::current_exe().unwrap().with_file_name(name);
    // SAFETY: the libraries run no code of consequence when they are loaded.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.unwrap()
}

/// Calls a function by name, with its parameters.
macro_rules! call {
    ($library:expr, $name:ident($($arg:expr => $ty:ty),*)) => {{
        // SAFETY: the symbol has this signature; the parameters are the test's own.
        unsafe {
            let name = concat!(stringify!($name), "\0").as_bytes();
            let function: libloading::os::unix::Symbol<unsafe extern "C" fn($($ty),*) -> i32> =
                $library.get(name).unwrap();
            function($($arg),*)
        }
    }};
}

#[test]
fn it_tells_what_the_driver_has() {
    let driver = open("libgpumem_sim_driver.so");
    let nvml = open("libgpumem_sim_nvml.so");
    assert_eq!(call!(nvml, nvmlInit_v2()), 0);
    let mut count = 0;
    assert_eq!(
        call!(nvml, nvmlDeviceGetCount_v2(&mut count => *mut u32)),
        0
    );
    assert_eq!(count, 1);
    let mut device = 0;
    let address = c"00000000:10:00.0".as_ptr();
    assert_eq!(
        call!(nvml, nvmlDeviceGetHandleByPciBusId_v2(address => *const c_char, &mut device => *mut usize)),
        0
    );
    let mut other = 0;
    assert_eq!(
        call!(nvml, nvmlDeviceGetHandleByIndex_v2(1 => u32, &mut other => *mut usize)),
        2
    );

    let mut uuid = [0_u8; 80];
    assert_eq!(
        call!(nvml, nvmlDeviceGetUUID(device => usize, uuid.as_mut_ptr() => *mut u8, 80 => u32)),
        0
    );
    let text = CStr::from_bytes_until_nul(&uuid).unwrap();
    assert_eq!(
        call!(nvml, nvmlDeviceGetHandleByUUID(text.as_ptr() => *const c_char, &mut other => *mut usize)),
        0
    );
    assert_eq!(other, device);
    assert_eq!(
        call!(nvml, nvmlDeviceGetUUID(device => usize, uuid.as_mut_ptr() => *mut u8, 8 => u32)),
        7
    );

    // Nothing is taken, and nobody is there.
    let (mut memory, mut processes, mut process) = ([0_u64; 3], 4_u32, [0_u64; 12]);
    assert_eq!(
        call!(nvml, nvmlDeviceGetMemoryInfo(device => usize, &mut memory => *mut [u64; 3])),
        0
    );
    assert_eq!(memory, [8 << 30, 8 << 30, 0]);
    let mut ask = |room: u32| {
        processes = room;
        let result = call!(nvml, nvmlDeviceGetComputeRunningProcesses_v3(device => usize, &mut processes => *mut u32, process.as_mut_ptr() => *mut u64));
        (result, processes, process[0] as u32, process[1])
    };
    assert_eq!(ask(4), (0, 0, 0, 0));

    let (mut context, mut pointer) = (0, 0);
    assert_eq!(call!(driver, cuInit(0 => u32)), 0);
    assert_eq!(
        call!(driver, cuDevicePrimaryCtxRetain(&mut context => *mut u64, 0 => i32)),
        0
    );
    assert_eq!(call!(driver, cuCtxSetCurrent(context => u64)), 0);
    assert_eq!(
        call!(driver, cuMemAlloc_v2(&mut pointer => *mut u64, 3 * MIB as usize => usize)),
        0
    );
    assert_eq!(
        call!(nvml, nvmlDeviceGetMemoryInfo(device => usize, &mut memory => *mut [u64; 3])),
        0
    );
    assert_eq!(memory, [8 << 30, (8 << 30) - 4 * MIB, 4 * MIB]);
    assert_eq!(ask(0), (7, 1, 0, 0));
    assert_eq!(ask(4), (0, 1, std::process::id(), 4 * MIB));
    // What a simulated device does not have.
    assert_eq!(call!(nvml, nvmlDeviceGetTemperature()), 3);
}
