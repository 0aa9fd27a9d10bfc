//! What was alive at exit is what lived before the program was taken down, whatever its end gives back.

use std::path::{Path, PathBuf};

use gpumem_collector::model::Process;
use gpumem_collector::model::exit::ExitReason;
use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc, python};
use gpumem_wire::DeviceOrdinal;

const MIB: u64 = 1 << 20;

/// A script beside the tests.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("python")
        .join(name)
}

#[track_caller]
fn assert_at_exit(process: &Process, reason: ExitReason, live_bytes: u64, objects: u64) {
    let at_exit = process.at_exit().expect("the exit was seen");
    assert_eq!(at_exit.reason, reason);
    let live = at_exit.totals[&DeviceOrdinal(0)].live;
    assert_eq!((live.live_bytes, live.live_objects), (live_bytes, objects));
    assert!(process.end().is_some_and(|end| end.orderly));
    assert_eq!(process.lost().total(), 0);
}

/// What is alive on the device when all is over.
fn left(process: &Process) -> u64 {
    process.totals()[&DeviceOrdinal(0)].live.live_bytes
}

fn check_python(minor: u32) {
    let Some(python) = python::interpreter(minor) else {
        return;
    };
    let place = Place::new();
    let finished = finish(place.preloaded(python).arg(script("finalising.py"))).well();
    let pid = finished.out.trim().parse().expect("the job says its pid");
    let session = place.spooled();
    let process = session.process(pid).expect("its record");
    assert_at_exit(process, ExitReason::Finalising, 12 * MIB, 6);
    let truth = place.truth(pid);
    let freed = truth["calls"]["cuMemFree_v2"].as_u64();
    assert!(freed > Some(4), "the end gave back most of it: {freed:?}");
    assert_eq!(
        truth["devices"][0]["size_bytes"].as_u64(),
        Some(left(process))
    );
    assert!(left(process) < 12 * MIB);
}

#[test]
fn python_3_11_whose_globals_free() {
    check_python(11);
}

#[test]
fn python_3_12_whose_globals_free() {
    check_python(12);
}

/// A free that fails after the interpreter began to end leaves the object alive, though the end is noticed in between.
#[test]
fn a_free_that_fails_in_the_end() {
    let Some(python) = python::interpreter(11) else {
        return;
    };
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("stubborn_driver.c", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let driver = driver.display().to_string();
    let late = cc::library("late.c", &place.path("liblate.so"), &[&driver]);
    let mut command = place.preloaded(python);
    let finished = finish(command.arg(script("late_free.py")).arg(late)).well();
    let (pid, said) = finished.out.split_once('\n').expect("two lines");
    assert_eq!(said, "free 700\n");
    let session = place.spooled();
    let process = session.process(pid.parse().expect("a pid"));
    let process = process.expect("its record");
    assert!(process.end().is_some_and(|end| end.orderly));
    assert_eq!(process.lost().total(), 0);
    assert_eq!(left(process), MIB);
}

#[test]
fn a_program_with_an_exit_handler() {
    let place = Place::new();
    let program = cc::program("exits.c", &place.path("exits"), &[]);
    let finished = finish(&mut place.preloaded(program)).well();
    let pid = finished.out.trim().parse().expect("the job says its pid");
    let session = place.spooled();
    let process = session.process(pid).expect("its record");
    assert_at_exit(process, ExitReason::ExitHandler, 4 * MIB, 2);
    // The handler gave 3 MiB back and took 5.
    assert_eq!(left(process), 6 * MIB);
}
