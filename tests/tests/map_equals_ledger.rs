//! The recorded map is the driver's own account, byte for byte, after 500,000 random calls of four threads.

use std::path::Path;
use std::process::Command;

use gpumem_collector::model::{Process, Session};
use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc, ledger};
use serde_json::Value;

const OPERATIONS: &str = "500000";

/// Calls that the driver fails although they are right: the n-th of a function, with an error of its own.
const FAILURES: &str = "cuMemAlloc_v2:100=2,cuMemFree_v2:200=700,cuMemFree_v2:900=1,cuMemFreeAsync:77=700,\
    cuMemFreeAsync_ptsz:50=1,cuMemAllocAsync:30=2,cuCtxDestroy_v2:3=700,cuCtxDestroy_v2:9=1,cuMemUnmap:20=700,\
    cuMemUnmap:401=1,cuMemRelease:11=1,cuMemRelease:500=1,cuMemAddressFree:5=1,cuMemPoolDestroy:2=1,\
    cuDevicePrimaryCtxRelease_v2:2=201,cuDevicePrimaryCtxRelease_v2:7=201,cuMemMap:9=2,cuMemCreate:13=2,\
    cuMemRetainAllocationHandle:4=1,cuMemHostAlloc:40=2,cuMemFreeHost:30=1,cuMemHostUnregister:20=713,\
    cuMemHostRegister_v2:9=712";

/// Functions that the job must have called, each some hundred times.
const CALLED: [&str; 28] = [
    "cuMemAlloc_v2",
    "cuMemAllocPitch_v2",
    "cuMemAllocManaged",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemAllocHost_v2",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemAllocAsync",
    "cuMemAllocAsync_ptsz",
    "cuMemAllocFromPoolAsync",
    "cuMemAllocFromPoolAsync_ptsz",
    "cuMemFreeAsync",
    "cuMemFreeAsync_ptsz",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemRetainAllocationHandle",
    "cuMemAddressReserve",
    "cuMemAddressFree",
    "cuMemMap",
    "cuMemUnmap",
    "cuCtxCreate_v2",
    "cuCtxDestroy_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
];

fn job(mut command: Command, seed: &str) -> Value {
    command
        .args([seed, OPERATIONS])
        .env("GPUMEM_SIM_DEVICES", "2")
        .env("GPUMEM_SIM_MEMORY", "16GiB")
        .env("GPUMEM_SIM_FAIL", FAILURES);
    finish(&mut command).well().json()
}

#[track_caller]
fn only(session: &Session) -> &Process {
    assert_eq!(session.processes.len(), 1, "{:?}", session.notes);
    assert!(session.notes.is_empty(), "{:?}", session.notes);
    &session.processes[0]
}

#[track_caller]
fn assert_whole(place: &Place, said: &Value, process: &Process) {
    let truth = place.truth(said["pid"].as_u64().expect("a pid") as u32);
    for name in CALLED {
        let calls = truth["calls"][name].as_u64().unwrap_or_default();
        assert!(calls >= 200, "{name} was called {calls} times");
    }
    for name in [
        "cuMemFree_v2",
        "cuMemFreeAsync",
        "cuCtxDestroy_v2",
        "cuMemUnmap",
    ] {
        assert_eq!(truth["errors"][name]["700"], 1, "{name} was made to fail");
    }
    let failed = said["failed"].as_u64().expect("a count");
    assert!(failed > 1000, "{failed} calls failed");
    let pools: Vec<u64> = serde_json::from_value(said["pools"].clone()).expect("a list of pools");
    let driver = ledger::of_driver(&truth, &pools);
    let kinds = ledger::kinds(&driver);
    assert_eq!(kinds.len(), 10, "not every kind is left alive: {kinds:?}");
    assert_eq!(process.lost().total(), 0);
    ledger::assert_equal(&driver, &ledger::of_model(process));
}

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_gpumem-random-ops"))
}

#[test]
fn under_plain_preload() {
    for seed in ["1", "2", "3"] {
        let place = Place::new();
        let said = job(place.preloaded(program()), seed);
        let session = place.spooled();
        assert_whole(&place, &said, only(&session));
    }
}

#[test]
fn under_gpumem_run() {
    let place = Place::new();
    let said = job(place.recorded(program()), "4");
    let session = place.recording();
    assert_whole(&place, &said, only(&session));
    assert!(place.spool_files().is_empty());
}

#[test]
fn a_block_is_on_the_device_of_its_pool() {
    let place = Place::new();
    let program = cc::program("pool_device.c", &place.path("pool_device"), &[]);
    let mut command = place.preloaded(program);
    let finished = finish(command.env("GPUMEM_SIM_DEVICES", "2")).well();
    let pid = finished.out.trim().parse().expect("a pid");
    let driver = ledger::of_driver(&place.truth(pid), &[]);
    assert!(
        driver
            .iter()
            .any(|entry| entry.kind == "pool-block" && entry.device == Some(1))
    );
    let session = place.spooled();
    ledger::assert_equal(&driver, &ledger::of_model(only(&session)));
}
