//! The simulated management library beside the simulated driver.

use std::ffi::{CStr, c_char};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    // Numbers and points alone, which is how programs read it.
    let mut version = [7_u8; 80];
    assert_eq!(
        call!(nvml, nvmlSystemGetDriverVersion(version.as_mut_ptr() => *mut u8, 80 => u32)),
        0
    );
    let version = CStr::from_bytes_until_nul(&version).unwrap();
    assert_eq!(version, c"0.0.0");
    let mut generation = 0;
    assert_eq!(
        call!(nvml, nvmlDeviceGetCurrPcieLinkGeneration(0 => usize, &mut generation => *mut u32)),
        3
    );
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
    // A second version of the structure: no fabric, and what lies behind the first version's members is left alone.
    let mut fabric = [0xff_u8; 40];
    fabric[..4].copy_from_slice(&0x0200_0024_u32.to_ne_bytes());
    assert_eq!(
        call!(nvml, nvmlDeviceGetGpuFabricInfoV(device => usize, fabric.as_mut_ptr() => *mut u8)),
        0
    );
    assert_eq!(fabric[..4], 0x0200_0024_u32.to_ne_bytes());
    assert_eq!((&fabric[4..29], fabric[32]), (&[0; 25][..], 0xff));
    assert_eq!(
        call!(nvml, nvmlDeviceGetGpuFabricInfoV(device => usize, std::ptr::null_mut() => *mut u8)),
        2
    );
    // What a simulated device does not have.
    assert_eq!(call!(nvml, nvmlDeviceGetTemperature()), 3);
}

/// Says what a process of the second test is for.
const ROLE: &str = "GPUMEM_SIM_TEST_ROLE";

/// A process of the second test, which shares `machine`.
fn role(role: &str, machine: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "it_lists_all_processes_of_the_machine",
            "--exact",
            "--nocapture",
        ])
        .env(ROLE, role)
        .env("GPUMEM_SIM_MACHINE", machine)
        .env("GPUMEM_SIM_DEVICE", "t4")
        .env("GPUMEM_SIM_CONTEXT", "2MiB");
    command
}

/// Takes memory, says so, and keeps it until its input ends.
fn hold(mib: &str) {
    let driver = open("libgpumem_sim_driver.so");
    let (mut context, mut pointer) = (0, 0);
    let bytes = mib.parse::<u64>().unwrap() * MIB;
    assert_eq!(call!(driver, cuInit(0 => u32)), 0);
    assert_eq!(
        call!(driver, cuDevicePrimaryCtxRetain(&mut context => *mut u64, 0 => i32)),
        0
    );
    assert_eq!(call!(driver, cuCtxSetCurrent(context => u64)), 0);
    assert_eq!(
        call!(driver, cuMemAlloc_v2(&mut pointer => *mut u64, bytes as usize => usize)),
        0
    );
    println!("held");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// Has no memory itself, and says who has.
fn observe() {
    let _driver = open("libgpumem_sim_driver.so");
    let nvml = open("libgpumem_sim_nvml.so");
    let (mut device, mut name, mut memory) = (0_usize, [0_u8; 64], [0_u64; 3]);
    assert_eq!(call!(nvml, nvmlInit_v2()), 0);
    assert_eq!(
        call!(nvml, nvmlDeviceGetHandleByIndex_v2(0 => u32, &mut device => *mut usize)),
        0
    );
    assert_eq!(
        call!(nvml, nvmlDeviceGetName(device => usize, name.as_mut_ptr() => *mut u8, 64 => u32)),
        0
    );
    assert!(name.starts_with(b"Tesla T4\0"));
    assert_eq!(
        call!(nvml, nvmlDeviceGetMemoryInfo(device => usize, &mut memory => *mut [u64; 3])),
        0
    );
    let (mut count, mut entries) = (1_u32, [[0_u64; 2]; 4]);
    let mut list = |count: &mut u32| call!(nvml, nvmlDeviceGetComputeRunningProcesses(device => usize, count => *mut u32, entries.as_mut_ptr() => *mut [u64; 2]));
    let with_little_room = list(&mut count);
    assert_eq!(with_little_room, if count > 1 { 7 } else { 0 });
    count = 4;
    assert_eq!(list(&mut count), 0);
    let listed: Vec<_> = entries[..count as usize]
        .iter()
        .map(|[pid, bytes]| format!("{}:{}", *pid as u32, bytes / MIB))
        .collect();
    println!("seen {} {}", memory[2] / MIB, listed.join(" "));
}

/// What an observer says now.
fn seen(machine: &Path) -> String {
    let output = role("observe", machine).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let line = text
        .lines()
        .find_map(|line| Some(line.split_once("seen ")?.1));
    line.unwrap().trim_end().to_owned()
}

#[test]
fn it_lists_all_processes_of_the_machine() {
    match std::env::var(ROLE).as_deref() {
        Ok("observe") => return observe(),
        Ok(mib) => return hold(mib),
        Err(_) => {}
    }
    let machine = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let machine = machine.join(format!("machine-{}", std::process::id()));
    assert_eq!(seen(&machine), "0");
    let mut holders: Vec<_> = ["10", "20"]
        .map(|mib| {
            let mut command = role(mib, &machine);
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let from = BufReader::new(child.stdout.take().unwrap());
            let mut lines = from.lines().map(Result::unwrap);
            assert!(lines.any(|line| line.contains("held")));
            child
        })
        .into();
    let [first, second] = [holders[0].id(), holders[1].id()];
    assert_eq!(seen(&machine), format!("34 {first}:12 {second}:22"));
    let mut killed = holders.remove(0);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(seen(&machine), format!("22 {second}:22"));
    // The end of its input is the end of the process.
    drop(holders[0].stdin.take());
    holders[0].wait().unwrap();
    assert_eq!(seen(&machine), "0");
    std::fs::remove_file(machine).unwrap();
}

/// The device of a management library's index: UUID, and bytes in use.
fn listed(nvml: &Library, index: u32) -> (String, u64) {
    let (mut device, mut uuid, mut memory) = (0_usize, [0_u8; 80], [0_u64; 3]);
    assert_eq!(
        call!(nvml, nvmlDeviceGetHandleByIndex_v2(index => u32, &mut device => *mut usize)),
        0
    );
    assert_eq!(
        call!(nvml, nvmlDeviceGetUUID(device => usize, uuid.as_mut_ptr() => *mut u8, 80 => u32)),
        0
    );
    assert_eq!(
        call!(nvml, nvmlDeviceGetMemoryInfo(device => usize, &mut memory => *mut [u64; 3])),
        0
    );
    let uuid = CStr::from_bytes_until_nul(&uuid).unwrap();
    (uuid.to_str().unwrap().to_owned(), memory[2])
}

/// Takes memory of its first device, and says what the library makes of that.
fn take_and_list() {
    let driver = open("libgpumem_sim_driver.so");
    let nvml = open("libgpumem_sim_nvml.so");
    let (mut context, mut pointer, mut count) = (0, 0, 0);
    assert_eq!(call!(nvml, nvmlInit_v2()), 0);
    let result = call!(driver, cuInit(0 => u32));
    if result == 0 {
        assert_eq!(
            call!(driver, cuDevicePrimaryCtxRetain(&mut context => *mut u64, 0 => i32)),
            0
        );
        assert_eq!(call!(driver, cuCtxSetCurrent(context => u64)), 0);
        assert_eq!(
            call!(driver, cuMemAlloc_v2(&mut pointer => *mut u64, 4 * MIB as usize => usize)),
            0
        );
    }
    assert_eq!(
        call!(nvml, nvmlDeviceGetCount_v2(&mut count => *mut u32)),
        0
    );
    let devices: Vec<_> = (0..count).map(|index| listed(&nvml, index)).collect();
    let uuid = |ordinal: i32| {
        let mut uuid = [0_u8; 16];
        let result = call!(driver, cuDeviceGetUuid_v2(&mut uuid => *mut [u8; 16], ordinal => i32));
        (result == 0).then(|| {
            uuid.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        })
    };
    // The program's devices by the library's index, joined by UUID.
    let joined: Vec<_> = (0..)
        .map_while(uuid)
        .map(|uuid| {
            let is_it = |(text, _): &(String, u64)| text.replace('-', "") == format!("GPU{uuid}");
            devices.iter().position(is_it).unwrap()
        })
        .collect();
    let used: Vec<_> = devices.iter().map(|(_, bytes)| bytes / MIB).collect();
    println!("seen {result} {joined:?} {used:?}");
}

#[test]
fn it_tells_of_devices_that_the_program_does_not_see() {
    if std::env::var_os(ROLE).is_some() {
        return take_and_list();
    }
    for (list, expected) in [
        ("2,0", "0 [2, 0] [0, 0, 4]"),
        ("1", "0 [1] [0, 4, 0]"),
        ("", "100 [] [0, 0, 0]"),
    ] {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([
                "it_tells_of_devices_that_the_program_does_not_see",
                "--exact",
                "--nocapture",
            ])
            .env(ROLE, "list")
            .env("GPUMEM_SIM_DEVICES", "3")
            .env("CUDA_VISIBLE_DEVICES", list)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let seen = lines.find_map(|line| Some(line.split_once("seen ")?.1));
        assert_eq!(seen, Some(expected), "{list}");
    }
}
