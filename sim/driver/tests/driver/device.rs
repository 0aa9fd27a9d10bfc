//! Start-up and what devices say of themselves.

use std::ffi::CStr;

use crate::library::*;

#[test]
fn nothing_works_before_the_start() {
    isolated("device::nothing_works_before_the_start", &[], |driver| {
        let (mut count, mut address) = (7, 7);
        assert_eq!(driver.cuDeviceGetCount(&mut count), NOT_INITIALIZED);
        assert_eq!(driver.cuMemAlloc_v2(&mut address, MIB), NOT_INITIALIZED);
        assert_eq!((count, address), (7, 7));
        assert_eq!(get(|out| driver.cuDriverGetVersion(out)), 13_020);
        assert_eq!(driver.cuInit(1), INVALID_VALUE);
        assert_eq!(driver.cuInit(0), SUCCESS);
        assert_eq!(get(|out| driver.cuDeviceGetCount(out)), 1);
    });
}

#[test]
fn devices_differ() {
    let environment = [("GPUMEM_SIM_DEVICES", "3"), ("GPUMEM_SIM_MEMORY", "24GiB")];
    isolated("device::devices_differ", &environment, |driver| {
        assert_eq!(driver.cuInit(0), SUCCESS);
        assert_eq!(get(|out| driver.cuDeviceGetCount(out)), 3);
        let mut seen = Vec::new();
        for device in 0..3 {
            let mut uuid = [0; 16];
            let mut pci = [0; 32];
            assert_eq!(driver.cuDeviceGetUuid_v2(&mut uuid, device), SUCCESS);
            assert_eq!(
                driver.cuDeviceGetPCIBusId(pci.as_mut_ptr(), 32, device),
                SUCCESS
            );
            let bus = get(|out| driver.cuDeviceGetAttribute(out, 33, device));
            let total = get(|out| driver.cuDeviceTotalMem_v2(out, device));
            assert_eq!(total, 24 << 30);
            assert!(!seen.contains(&(uuid, pci, bus)));
            assert!(
                seen.iter()
                    .all(|(u, p, b)| *u != uuid && *p != pci && *b != bus)
            );
            seen.push((uuid, pci, bus));
        }
        let mut value = 0;
        assert_eq!(driver.cuDeviceGet(&mut value, 3), INVALID_DEVICE);
        assert_eq!(driver.cuDeviceGet(&mut value, -1), INVALID_DEVICE);
        assert_eq!(
            driver.cuDeviceGetAttribute(&mut value, 9999, 0),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuDeviceGetAttribute(std::ptr::null_mut(), 1, 0),
            INVALID_VALUE
        );
    });
}

#[test]
fn the_name_is_cut_to_fit() {
    isolated("device::the_name_is_cut_to_fit", &[], |driver| {
        assert_eq!(driver.cuInit(0), SUCCESS);
        let mut name = [1; 64];
        assert_eq!(driver.cuDeviceGetName(name.as_mut_ptr(), 64, 0), SUCCESS);
        let whole = CStr::from_bytes_until_nul(&name).unwrap();
        assert_eq!(whole.to_str().unwrap(), "gpumem simulated GPU");
        let mut name = [1; 8];
        assert_eq!(driver.cuDeviceGetName(name.as_mut_ptr(), 7, 0), SUCCESS);
        assert_eq!(&name, b"gpumem\0\x01");
        assert_eq!(
            driver.cuDeviceGetName(name.as_mut_ptr(), 0, 0),
            INVALID_VALUE
        );
    });
}

#[test]
fn errors_have_names() {
    isolated("device::errors_have_names", &[], |driver| {
        let mut name = std::ptr::null();
        assert_eq!(driver.cuGetErrorName(OUT_OF_MEMORY, &mut name), SUCCESS);
        // SAFETY: the driver answered a string that lives for ever.
        let text = unsafe { CStr::from_ptr(name) };
        assert_eq!(text.to_str().unwrap(), "CUDA_ERROR_OUT_OF_MEMORY");
        assert_eq!(driver.cuGetErrorName(12345, &mut name), INVALID_VALUE);
        assert!(name.is_null());
    });
}

#[test]
fn what_is_not_simulated_is_refused_and_named_once() {
    let log = scratch("log");
    let path = log.to_str().unwrap().to_owned();
    let test = "device::what_is_not_simulated_is_refused_and_named_once";
    isolated(test, &[("GPUMEM_SIM_LOG", &path)], |driver| {
        driver.start();
        for _ in 0..3 {
            assert_eq!(driver.cuTexRefCreate(), NOT_SUPPORTED);
            let mut table = 7;
            assert_eq!(
                driver.cuGetExportTable(&mut table, [0; 16].as_ptr()),
                NOT_FOUND
            );
        }
        assert_eq!(driver.cuArrayCreate_v2(), NOT_SUPPORTED);
        let truth = driver.truth();
        assert_eq!(truth["calls"]["cuTexRefCreate"], 3);
        assert_eq!(truth["errors"]["cuTexRefCreate"]["801"], 3);
        let log = std::fs::read_to_string(std::env::var("GPUMEM_SIM_LOG").unwrap()).unwrap();
        for name in ["cuTexRefCreate", "cuGetExportTable", "cuArrayCreate_v2"] {
            assert_eq!(log.matches(name).count(), 1, "{name} in {log}");
        }
    });
    // Only the process in which the body ran has written it.
    let _ = std::fs::remove_file(log);
}

#[test]
fn every_function_that_is_not_simulated_says_so_once() {
    // The table's rows that are at home nowhere.
    let table = include_str!("../../src/table.rs");
    let symbols: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';')?.split_once(" refused "))
        .map(|(_, symbol)| symbol)
        .collect();
    assert!(symbols.len() > 100);
    let log = scratch("log-of-all");
    let path = log.to_str().unwrap().to_owned();
    let test = "device::every_function_that_is_not_simulated_says_so_once";
    isolated(test, &[("GPUMEM_SIM_LOG", &path)], |driver| {
        for symbol in &symbols {
            // Twice, and before the start, too.
            assert_eq!(driver.call(symbol), NOT_SUPPORTED, "{symbol}");
            assert_eq!(driver.call(symbol), NOT_SUPPORTED, "{symbol}");
        }
        let log = std::fs::read_to_string(std::env::var("GPUMEM_SIM_LOG").unwrap()).unwrap();
        for symbol in &symbols {
            let line = format!(" {symbol} is not simulated\n");
            assert_eq!(log.matches(&line).count(), 1, "{symbol}");
        }
        assert_eq!(log.lines().count(), symbols.len());
    });
    // Only the process in which the body ran has written it.
    let _ = std::fs::remove_file(log);
}
