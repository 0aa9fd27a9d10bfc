//! Device memory that two processes share.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::library::*;

/// Set for the process that opens what the other exported.
const HANDLE: &str = "GPUMEM_SIM_TEST_HANDLE";

pub(crate) fn to_text(handle: &IpcHandle) -> String {
    handle.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn from_text(text: &str) -> IpcHandle {
    let mut bytes = [0; 64];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[index * 2..index * 2 + 2], 16).unwrap();
    }
    IpcHandle(bytes)
}

/// The second process: reads three bytes, writes others, and says so.
fn import(driver: &Driver, handle: IpcHandle) {
    driver.start();
    let address = get(|out| driver.cuIpcOpenMemHandle_v2(out, handle, 1));
    assert_eq!(
        get(|out| driver.cuIpcOpenMemHandle_v2(out, handle, 1)),
        address
    );
    let mut read = [0; 3];
    assert_eq!(
        driver.cuMemcpyDtoH_v2(read.as_mut_ptr(), address, 3),
        SUCCESS
    );
    assert_eq!(read, [1, 2, 3]);
    assert_eq!(
        driver.cuMemcpyHtoD_v2(address, [4, 5, 6].as_ptr(), 3),
        SUCCESS
    );
    assert_eq!(driver.used(), 0, "the memory is the other process's");
    assert_eq!(driver.cuMemFree_v2(address), INVALID_VALUE);
    assert_eq!(driver.live("imported").len(), 1);
    for _ in 0..2 {
        assert_eq!(driver.cuIpcCloseMemHandle(address), SUCCESS);
    }
    assert_eq!(driver.cuIpcCloseMemHandle(address), INVALID_VALUE);
    println!("imported");
}

#[test]
fn two_processes_share_memory() {
    let test = "ipc::two_processes_share_memory";
    isolated(test, &[], |driver| {
        if let Ok(handle) = std::env::var(HANDLE) {
            return import(driver, from_text(&handle));
        }
        driver.start();
        let memory = driver.alloc(2 * MIB);
        assert_eq!(
            driver.cuMemcpyHtoD_v2(memory, [1, 2, 3].as_ptr(), 3),
            SUCCESS
        );
        let mut handle = IpcHandle([0; 64]);
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, memory + 100), SUCCESS);
        let mut out = 0;
        assert_eq!(
            driver.cuIpcOpenMemHandle_v2(&mut out, handle, 1),
            INVALID_CONTEXT
        );
        assert_eq!(driver.cuIpcGetMemHandle(&mut handle, 4096), INVALID_VALUE);

        let mut other = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
            .env(HANDLE, to_text(&handle))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(other.stdout.take().unwrap());
        let lines: Vec<String> = output.lines().map(Result::unwrap).collect();
        assert!(other.wait().unwrap().success(), "{lines:?}");
        assert!(
            lines.iter().any(|line| line.contains("imported")),
            "{lines:?}"
        );
        let mut read = [0; 3];
        assert_eq!(
            driver.cuMemcpyDtoH_v2(read.as_mut_ptr(), memory, 3),
            SUCCESS
        );
        assert_eq!(read, [4, 5, 6]);
    });
}
