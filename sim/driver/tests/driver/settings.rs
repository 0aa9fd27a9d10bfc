//! The memory limit, and failures on demand.

use crate::library::*;

#[test]
fn beyond_the_limit_nothing_is_given_or_changed() {
    let test = "settings::beyond_the_limit_nothing_is_given_or_changed";
    isolated(test, &[("GPUMEM_SIM_MEMORY", "40MiB")], |driver| {
        driver.start();
        let first = driver.alloc(37 * MIB);
        let mut out = 7;
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 3 * MIB), OUT_OF_MEMORY);
        assert_eq!(driver.cuMemAllocAsync(&mut out, MIB, 0), OUT_OF_MEMORY);
        let here = MemoryProps::new(on(0));
        assert_eq!(
            driver.cuMemCreate(&mut out, 4 * MIB, &here, 0),
            OUT_OF_MEMORY
        );
        assert_eq!((out, driver.used()), (7, 38 * MIB));
        driver.alloc(2 * MIB);
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 1), OUT_OF_MEMORY);
        assert_eq!(driver.cuMemFree_v2(first), SUCCESS);
        driver.alloc(38 * MIB);
        let truth = driver.truth();
        assert_eq!(truth["devices"][0]["peak_charged_bytes"], 40 * MIB);
        assert_eq!(truth["errors"]["cuMemAlloc_v2"]["2"], 2);
    });
}

#[test]
fn the_named_call_fails() {
    let fail = "cuMemAlloc_v2:2,cuMemFree_v2:1=700,cuMemAllocAsync_ptsz:1";
    isolated(
        "settings::the_named_call_fails",
        &[("GPUMEM_SIM_FAIL", fail)],
        |driver| {
            driver.start();
            let first = driver.alloc(MIB);
            let mut out = 7;
            assert_eq!(driver.cuMemAlloc_v2(&mut out, MIB), OUT_OF_MEMORY);
            assert_eq!(out, 7);
            driver.alloc(MIB);
            // Only the variant that was named.
            get(|out| driver.cuMemAllocAsync(out, MIB, 0));
            assert_eq!(driver.cuMemAllocAsync_ptsz(&mut out, MIB, 0), OUT_OF_MEMORY);
            assert_eq!(driver.cuMemFree_v2(first), 700);
            assert_eq!(driver.live("device").len(), 2);
            assert_eq!(driver.cuMemFree_v2(first), SUCCESS);
            let truth = driver.truth();
            assert_eq!(truth["calls"]["cuMemAlloc_v2"], 3);
            assert_eq!(truth["errors"]["cuMemFree_v2"]["700"], 1);
        },
    );
}

#[test]
fn small_copies_to_the_host_bring_zeros_on_demand() {
    let test = "settings::small_copies_to_the_host_bring_zeros_on_demand";
    isolated(test, &[("GPUMEM_SIM_SMALL_D2H", "4")], |driver| {
        driver.start();
        let memory = driver.alloc(64);
        assert_eq!(driver.cuMemsetD8_v2(memory, 7, 64), SUCCESS);
        let mut back = [1; 5];
        let to = back.as_mut_ptr();
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 4, 0), SUCCESS);
        assert_eq!(back, [0, 0, 0, 0, 1]);
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 5, 0), SUCCESS);
        assert_eq!(back, [7; 5]);
        // What waits for itself is no count of a kernel's.
        assert_eq!(driver.cuMemcpyDtoH_v2(to, memory, 4), SUCCESS);
        assert_eq!(back, [7; 5]);
    });
}

#[test]
fn a_device_by_name() {
    let environment = [
        ("GPUMEM_SIM_DEVICE", "RTX 4090"),
        ("GPUMEM_SIM_DEVICES", "2"),
    ];
    isolated("settings::a_device_by_name", &environment, |driver| {
        driver.start();
        let mut name = [0; 64];
        assert_eq!(driver.cuDeviceGetName(name.as_mut_ptr(), 64, 1), SUCCESS);
        assert!(name.starts_with(b"NVIDIA GeForce RTX 4090\0"));
        let attribute = |id| get(|out| driver.cuDeviceGetAttribute(out, id, 1));
        // Capability, multiprocessors, threads of each, shared memory, clusters.
        let all = [75, 76, 16, 39, 81, 120].map(attribute);
        assert_eq!(all, [8, 9, 128, 1536, 100 << 10, 0]);
        let (mut free, mut total) = (0, 0);
        assert_eq!(driver.cuMemGetInfo_v2(&mut free, &mut total), SUCCESS);
        assert_eq!(total, get(|out| driver.cuDeviceTotalMem_v2(out, 0)));
        assert_eq!(format!("{:.2}", total as f64 / f64::from(1 << 30)), "23.52");
        // The context takes its part.
        assert_eq!(driver.truth()["devices"][0]["charged_bytes"], total - free);
        assert!(total - free > 300 * MIB);
        // A kernel's version and its blocks are the device's.
        let module = get(|out| driver.cuModuleLoadData(out, [0].as_ptr()));
        let name = c"kernel".as_ptr();
        let function = get(|out| driver.cuModuleGetFunction(out, module, name));
        assert_eq!(get(|out| driver.cuFuncGetAttribute(out, 6, function)), 89);
        let blocks =
            get(|out| driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, 32, 0));
        assert_eq!(blocks, 24);
    });
}

#[test]
fn settings_go_before_the_device() {
    let environment = [
        ("GPUMEM_SIM_DEVICE", "h200"),
        ("GPUMEM_SIM_MEMORY", "1GiB"),
        ("GPUMEM_SIM_CONTEXT", "6MiB"),
    ];
    isolated(
        "settings::settings_go_before_the_device",
        &environment,
        |driver| {
            driver.start();
            assert_eq!(driver.used(), 6 * MIB);
            assert_eq!(get(|out| driver.cuDeviceTotalMem_v2(out, 0)), 1 << 30);
        },
    );
}

#[test]
fn an_unknown_device_is_said_once() {
    let name = "GPUMEM_SIM_TEST_UNKNOWN";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    if std::env::var_os(name).is_some() {
        return isolated("", &[], |driver| {
            driver.start();
            assert_eq!(get(|out| driver.cuDeviceTotalMem_v2(out, 0)), 8 << 30);
        });
    }
    command
        .args([
            "settings::an_unknown_device_is_said_once",
            "--exact",
            "--nocapture",
        ])
        .envs([(name, "1"), ("GPUMEM_SIM_TEST_CHILD", "1")])
        .env("GPUMEM_SIM_DEVICE", "A100");
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let line = "GPUMEM_SIM_DEVICE=A100 names no device (there are: a100-40, a100-80)";
    assert_eq!(errors.matches(line).count(), 1, "{errors}");
}
