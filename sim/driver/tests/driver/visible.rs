//! Programs that see some of the devices: `CUDA_VISIBLE_DEVICES`.

use std::ffi::CStr;

use crate::ipc::{from_text, to_text};
use crate::library::*;
use crate::machine::{Other, ROLE, on_machine, serve};

/// `CU_DEVICE_INVALID`.
const NOT_VISIBLE: i32 = -2;

fn pci(driver: &Driver, device: i32) -> String {
    let mut text = [0_u8; 32];
    assert_eq!(
        driver.cuDeviceGetPCIBusId(text.as_mut_ptr(), 32, device),
        SUCCESS
    );
    let text = CStr::from_bytes_until_nul(&text).unwrap();
    text.to_str().unwrap().to_owned()
}

/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`.
fn ordinal_of(driver: &Driver, address: u64) -> i32 {
    get(|out| driver.cuPointerGetAttribute(out, 9, address)) as u32 as i32
}

/// Sets the variable in this process: what a program does before it starts CUDA.
fn set_list(list: &str) {
    // SAFETY: no other thread of this process looks at the environment now.
    unsafe { std::env::set_var("CUDA_VISIBLE_DEVICES", list) };
}

#[test]
fn the_program_counts_what_it_sees() {
    let environment = [
        ("GPUMEM_SIM_DEVICES", "3"),
        ("CUDA_VISIBLE_DEVICES", "2,0,-1,1"),
    ];
    let test = "visible::the_program_counts_what_it_sees";
    isolated(test, &environment, |driver| {
        driver.start();
        assert_eq!(get(|out| driver.cuDeviceGetCount(out)), 2);
        let mut device = 7;
        assert_eq!(driver.cuDeviceGet(&mut device, 2), INVALID_DEVICE);
        assert_eq!(get(|out| driver.cuDeviceGet(out, 1)), 1);
        // What a device is stays what it is to all.
        assert_eq!(pci(driver, 0), "0000:12:00.0");
        assert_eq!(pci(driver, 1), "0000:10:00.0");
        assert_eq!(
            get(|out| driver.cuDeviceGetAttribute(out, 33, 0)),
            0x12,
            "the bus"
        );
        let mut by_address =
            |address: &CStr| match driver.cuDeviceGetByPCIBusId(&mut device, address.as_ptr()) {
                SUCCESS => Ok(device),
                code => Err(code),
            };
        assert_eq!(by_address(c"0000:12:00.0"), Ok(0));
        assert_eq!(by_address(c"0000:10:00.0"), Ok(1));
        assert_eq!(by_address(c"0000:11:00.0"), Err(INVALID_DEVICE));
        let truth = driver.truth();
        let uuid: [u8; 16] = get(|out| driver.cuDeviceGetUuid_v2(out, 0));
        let digits: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = truth["devices"][2]["uuid"].as_str().unwrap();
        assert_eq!(text.replace('-', ""), format!("GPU{digits}"));
        // Answers name devices as the program does.
        assert_eq!(get(|out| driver.cuCtxGetDevice(out)), 0);
        let stream = get(|out| driver.cuStreamCreate(out, 0));
        assert_eq!(get(|out| driver.cuStreamGetDevice(stream, out)), 0);
        let memory = driver.alloc(4 * MIB);
        assert_eq!(ordinal_of(driver, memory), 0);
        assert_eq!(get(|out| driver.cuDeviceCanAccessPeer(out, 0, 1)), 1);
        let mut can = 7;
        assert_eq!(driver.cuDeviceCanAccessPeer(&mut can, 0, 2), INVALID_DEVICE);
        // So do questions; and memory is charged where it lies.
        let place = MemoryProps::new(on(1));
        let physical = get(|out| driver.cuMemCreate(out, 2 * MIB, &place, 0));
        let devices = driver.truth()["devices"].take();
        let charged: Vec<_> = (0..3).map(|at| &devices[at]["charged_bytes"]).collect();
        assert_eq!(charged, [2 * MIB, 0, 4 * MIB]);
        let ordinals: Vec<_> = (0..3).map(|at| devices[at]["ordinal"].as_i64()).collect();
        assert_eq!(ordinals, [Some(1), None, Some(0)]);
        assert_eq!(driver.live("physical")[0]["device"], 0);
        assert_eq!(driver.cuMemRelease(physical), SUCCESS);
    });
}

/// Runs a test in which nothing of two devices is visible.
fn sees_nothing(test: &str, list: &str) {
    let environment = [("GPUMEM_SIM_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", list)];
    isolated(test, &environment, |driver| {
        let (mut count, mut address) = (7, 7);
        assert_eq!(driver.cuInit(0), NO_DEVICE);
        assert_eq!(driver.cuDeviceGetCount(&mut count), NOT_INITIALIZED);
        assert_eq!(driver.cuMemAlloc_v2(&mut address, MIB), NOT_INITIALIZED);
        assert_eq!((count, address), (7, 7));
        // It has looked.
        set_list("0");
        assert_eq!(driver.cuInit(0), NO_DEVICE);
    });
}

#[test]
fn an_empty_list_lets_nothing_start() {
    sees_nothing("visible::an_empty_list_lets_nothing_start", "");
}

#[test]
fn minus_one_lets_nothing_start() {
    sees_nothing("visible::minus_one_lets_nothing_start", "-1");
}

#[test]
fn a_repetition_lets_nothing_start() {
    sees_nothing("visible::a_repetition_lets_nothing_start", "1,1");
}

#[test]
fn the_start_decides_what_is_seen() {
    let test = "visible::the_start_decides_what_is_seen";
    isolated(test, &[("GPUMEM_SIM_DEVICES", "2")], |driver| {
        // What is asked for the management library decides nothing.
        assert_eq!(driver.processes_on(1), []);
        set_list("1");
        driver.start();
        set_list("0,1");
        assert_eq!(driver.cuInit(0), SUCCESS);
        assert_eq!(get(|out| driver.cuDeviceGetCount(out)), 1);
        assert_eq!(pci(driver, 0), "0000:11:00.0");
    });
}

#[test]
fn each_rank_takes_memory_of_its_own_device() {
    let test = "visible::each_rank_takes_memory_of_its_own_device";
    let environment = [
        ("GPUMEM_SIM_DEVICES", "2"),
        ("GPUMEM_SIM_MEMORY", "100MiB"),
        ("CUDA_VISIBLE_DEVICES", "1,0"),
    ];
    on_machine(test, &environment, |driver| {
        if std::env::var_os(ROLE).is_some() {
            return serve(driver);
        }
        driver.start();
        let [mut first, mut second] = ["0", "1"]
            .map(|list| Other::start_under(test, "serve", &[("CUDA_VISIBLE_DEVICES", list)]));
        assert_eq!(first.ask("alloc 60"), "0");
        assert_eq!(second.ask("alloc 80"), "0");
        let charged = |other: &Other, mib: usize| (other.child.id(), (mib * MIB) as u64);
        assert_eq!(driver.processes_on(0), [charged(&first, 60)]);
        assert_eq!(driver.processes_on(1), [charged(&second, 80)]);
        // This process's first device is the second one's.
        assert_eq!(driver.used(), 80 * MIB);
        let mut out = 0;
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 22 * MIB), OUT_OF_MEMORY);
        driver.alloc(20 * MIB);
        assert_eq!(second.ask("used"), (100 * MIB).to_string());
        assert_eq!(first.ask("used"), (60 * MIB).to_string());
        first.kill();
        second.kill();
    });
}

#[test]
fn memory_of_an_invisible_device_can_be_opened() {
    let test = "visible::memory_of_an_invisible_device_can_be_opened";
    let environment = [("GPUMEM_SIM_DEVICES", "2"), ("CUDA_VISIBLE_DEVICES", "1")];
    on_machine(test, &environment, |driver| {
        if let Ok(role) = std::env::var(ROLE) {
            driver.start();
            let address = get(|out| driver.cuIpcOpenMemHandle_v2(out, from_text(&role), 1));
            let mut read = [0; 3];
            let to = read.as_mut_ptr();
            assert_eq!(driver.cuMemcpyDtoH_v2(to, address, 3), SUCCESS);
            let imported = driver.live("imported");
            println!(
                "answer {read:?} {} {} {}",
                ordinal_of(driver, address),
                imported[0]["device"],
                driver.used()
            );
            assert_eq!(driver.cuIpcCloseMemHandle(address), SUCCESS);
            return;
        }
        driver.start();
        let memory = driver.alloc(6 * MIB);
        let from = [1, 2, 3];
        assert_eq!(driver.cuMemcpyHtoD_v2(memory, from.as_ptr(), 3), SUCCESS);
        let mut handle = IpcHandle([0; 64]);
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, memory), SUCCESS);
        // What each list makes of the device, and what is taken of its first one.
        for (list, ordinal, used) in [("0", NOT_VISIBLE, 0), ("0,1", 1, 0), ("1", 0, 6 * MIB)] {
            let variables = [("CUDA_VISIBLE_DEVICES", list)];
            let mut other = Other::start_under(test, &to_text(&handle), &variables);
            assert_eq!(other.answer(), format!("[1, 2, 3] {ordinal} 1 {used}"));
            assert!(other.child.wait().unwrap().success());
        }
    });
}
