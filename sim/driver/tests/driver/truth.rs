//! The truth at exit, whichever way the program ends.

use std::process::Command;

use serde_json::Value;

use crate::library::*;

/// Runs `test` in a process of its own, whose body leaves by `exit`, and gives
/// the truth that it wrote.
fn truth_of(test: &str, body: impl FnOnce(&Driver)) -> Option<Value> {
    if std::env::var_os("GPUMEM_SIM_TEST_CHILD").is_some() {
        isolated(test, &[], body);
        unreachable!("the body ends the process");
    }
    let path = scratch(&test.replace("::", "-"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture"])
        .env("GPUMEM_SIM_TEST_CHILD", "1");
    let output = command.env("GPUMEM_SIM_TRUTH", &path).output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(42),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = std::fs::read_to_string(&path).ok()?;
    std::fs::remove_file(&path).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn it_says_what_is_live() {
    let truth = truth_of("truth::it_says_what_is_live", |driver| {
        driver.start();
        let freed = driver.alloc(10 * MIB);
        driver.alloc(3 * MIB);
        assert_eq!(driver.cuMemFree_v2(freed), SUCCESS);
        assert_eq!(driver.cuMemFree_v2(freed), INVALID_VALUE);
        std::process::exit(42);
    })
    .unwrap();
    assert_eq!(truth["schema"], "gpumem.sim-truth/1");
    let device = &truth["devices"][0];
    assert_eq!(device["charged_bytes"], 4 * MIB);
    assert_eq!(device["peak_charged_bytes"], 14 * MIB);
    assert_eq!(device["size_bytes"], 3 * MIB);
    assert_eq!(device["memory_bytes"], 8192 * MIB);
    let live = truth["live"].as_array().unwrap();
    let kinds: Vec<_> = live
        .iter()
        .map(|object| object["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["context", "device"]);
    assert_eq!(live[1]["size_bytes"], 3 * MIB);
    assert_eq!(live[1]["charged_bytes"], 4 * MIB);
    assert_eq!(live[1]["context"], live[0]["handle"]);
    assert_eq!(truth["calls"]["cuMemAlloc_v2"], 2);
    assert_eq!(truth["calls"]["cuMemFree_v2"], 2);
    assert_eq!(truth["errors"]["cuMemFree_v2"]["1"], 1);
}

#[test]
fn another_thread_may_end_the_program() {
    let truth = truth_of("truth::another_thread_may_end_the_program", |driver| {
        let context = driver.start();
        let (ready, wait) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            // One that never rests, and one that ends the program meanwhile.
            scope.spawn(|| {
                assert_eq!(driver.cuCtxSetCurrent(context), SUCCESS);
                let kept = driver.alloc(3 * MIB);
                ready.send(kept).unwrap();
                loop {
                    let passing = driver.alloc(MIB);
                    assert_eq!(driver.cuMemFree_v2(passing), SUCCESS);
                }
            });
            scope.spawn(move || {
                wait.recv().unwrap();
                std::process::exit(42);
            });
        });
    })
    .unwrap();
    let live = truth["live"].as_array().unwrap();
    let charged: u64 = live
        .iter()
        .map(|object| object["charged_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(truth["devices"][0]["charged_bytes"], charged);
    assert!(live.iter().any(|object| object["size_bytes"] == 3 * MIB));
}

#[test]
fn a_program_without_a_device_has_none() {
    let truth = truth_of("truth::a_program_without_a_device_has_none", |driver| {
        get(|out| driver.cuDriverGetVersion(out));
        std::process::exit(42);
    });
    assert_eq!(truth, None);
}

#[test]
fn a_forked_child_has_no_driver_and_leaves_the_truth_alone() {
    let test = "truth::a_forked_child_has_no_driver_and_leaves_the_truth_alone";
    let truth = truth_of(test, |driver| {
        driver.start();
        driver.alloc(MIB);
        // SAFETY: the child calls the driver, which takes no lock in it, and
        // leaves by `exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut address = 0;
            let status = driver.cuMemAlloc_v2(&mut address, MIB);
            std::process::exit(status);
        }
        let mut status = 0;
        // SAFETY: waits for the child just made.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(libc::WEXITSTATUS(status), NOT_INITIALIZED);
        let path = std::env::var("GPUMEM_SIM_TRUTH").unwrap();
        assert!(!std::path::Path::new(&path).exists());
        std::process::exit(42);
    });
    assert_eq!(truth.unwrap()["calls"]["cuMemAlloc_v2"], 1);
}
