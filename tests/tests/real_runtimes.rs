//! NVIDIA's own CUDA runtimes, 12 and 13, shared and static, get from our shim every function that it watches, at every
//! version and flag that they ask for, and nothing else of it.
//!
//! A spy logs each look-up of the runtime: once without the shim, where the offset in the driver says which function was
//! meant, and once with it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpumem_tests::deps::{self, Runtime};
use gpumem_tests::place::finish;
use gpumem_tests::routes::{self, Routes};
use gpumem_tests::{Place, artefacts, cc};

/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD: u64 = 2;

/// What each runtime is known to ask for, so that no empty log passes: names that the shim watches.
const MUST_ASK: [&str; 14] = [
    "cuMemAlloc",
    "cuMemAllocPitch",
    "cuMemAllocManaged",
    "cuMemFree",
    "cuMemAllocAsync",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuGetProcAddress",
];

/// The program, linked with the runtime in one of two ways.
fn program(place: &Place, runtime: &Runtime, linked: Linked) -> PathBuf {
    let to = place.path("program");
    match linked {
        Linked::Static => {
            let archive = runtime.archive.display().to_string();
            cc::program("runtime.c", &to, &[&archive, "-ldl", "-lrt", "-lm"])
        }
        Linked::Shared => {
            let folder = runtime.shared.parent().expect("a folder").display();
            let file = format!("-l:libcudart.so.{}", runtime.major);
            let search = [format!("-L{folder}"), format!("-Wl,-rpath,{folder}")];
            cc::program("runtime.c", &to, &[&search[0], &search[1], &file])
        }
    }
}

/// Runs the program under the spy, with the shim behind it or not, and gives what it asked and got.
fn look_ups(place: &Place, program: &Path, with_shim: bool) -> Routes {
    let spy = cc::library("spy.c", &place.path("spy.so"), &[]);
    let log = place.path(if with_shim { "with.log" } else { "without.log" });
    let mut preload = spy.into_os_string();
    let mut command = place.plain(program);
    if with_shim {
        preload.push(":");
        preload.push(artefacts::shim());
        command.env("SPY_NEXT", artefacts::shim());
    }
    command.env("LD_PRELOAD", preload).env("SPY_LOG", &log);
    let finished = finish(&mut command).well();
    assert!(finished.out.starts_with("cudaMalloc "), "{}", finished.out);
    routes::parse(&std::fs::read_to_string(&log).expect("the spy's log"))
}

#[derive(Clone, Copy, Debug)]
enum Linked {
    Shared,
    Static,
}

/// Checks a runtime on a driver: every answer that is one of the functions the shim watches comes from the shim, under the
/// same name; every other comes from the driver.
fn check(driver: &Path, runtime: &Runtime, linked: Linked) {
    let place = Place::on(driver);
    let program = program(&place, runtime, linked);
    let plain = look_ups(&place, &program, false);
    let shimmed = look_ups(&place, &program, true);
    let served = routes::check(driver, &plain, &shimmed);
    let served_as = |name: &str| -> BTreeSet<(&str, u64)> {
        let of_name = served.iter().filter(|question| question.0 == name);
        of_name
            .map(|(_, version, flags)| (version.as_str(), *flags))
            .collect()
    };
    for name in MUST_ASK {
        assert!(
            !served_as(name).is_empty(),
            "{linked:?}: {name} was never served"
        );
    }
    let selves = served_as("cuGetProcAddress");
    assert!(
        selves.contains(&("11030", 0)) && selves.contains(&("12000", 0)),
        "{selves:?}"
    );
    for name in [
        "cuMemAllocAsync",
        "cuMemFreeAsync",
        "cuMemAllocFromPoolAsync",
    ] {
        let answer = |flags| {
            let mut of_flags = shimmed
                .iter()
                .filter(|(question, _)| question.0 == name && question.2 == flags);
            of_flags.next().expect("both variants are asked for").1
        };
        assert_ne!(
            answer(0),
            answer(PER_THREAD),
            "{name}: one pointer for both"
        );
    }
}

fn check_runtime(major: u32, linked: Linked) {
    let Some(runtime) = deps::runtime(major) else {
        return;
    };
    check(&artefacts::sim_driver(), &runtime, linked);
    if let Some(driver) = deps::real_driver() {
        check(&driver, &runtime, linked);
    }
}

#[test]
fn runtime_12_shared() {
    check_runtime(12, Linked::Shared);
}

#[test]
fn runtime_12_static() {
    check_runtime(12, Linked::Static);
}

#[test]
fn runtime_13_shared() {
    check_runtime(13, Linked::Shared);
}

#[test]
fn runtime_13_static() {
    check_runtime(13, Linked::Static);
}
