//! The laws of a hook: what a program gets from the driver and the loader is the same with the shim and without it, whatever
//! it asks; and each process keeps its own record.

use std::process::Command;

use gpumem_collector::model::{Process, Session};
use gpumem_tests::ledger::allocations;
use gpumem_tests::place::finish;
use gpumem_tests::{Finished, Place, artefacts, cc, ledger};

/// Right calls of `laws.c` that the driver fails: an allocation and a free.
const FAILURES: &str = "cuMemAlloc_v2:5=2,cuMemFree_v2:2=700";

/// Runs a program without the shim and with it, and checks that it prints the same. Gives the second run.
#[track_caller]
fn same_with_the_shim(place: &Place, program: &std::path::Path, arguments: &[&str]) -> Finished {
    let run = |mut command: Command| {
        command.args(arguments).env("GPUMEM_SIM_FAIL", FAILURES);
        finish(&mut command).well()
    };
    let plain = run(place.plain(program));
    let shimmed = run(place.preloaded(program));
    let differ: Vec<(&str, &str)> = plain
        .out
        .lines()
        .zip(shimmed.out.lines())
        .filter(|(a, b)| a != b)
        .collect();
    assert!(differ.is_empty(), "without and with the shim: {differ:#?}");
    assert_eq!(shimmed.out, plain.out);
    assert_eq!(shimmed.err, plain.err);
    shimmed
}

#[track_caller]
fn only(session: &Session) -> &Process {
    assert_eq!(session.processes.len(), 1, "{:?}", session.notes);
    &session.processes[0]
}

#[test]
fn results_answers_errno_and_dlerror_are_the_drivers_own() {
    let place = Place::new();
    let program = cc::program("laws.c", &place.path("laws"), &[]);
    let finished = same_with_the_shim(&place, &program, &[]);
    // The run was not empty, and the failures on demand were met.
    for said in [
        "cuMemAlloc_v2(&address, 1000): 0 errno 77 written",
        "cuMemAlloc_v2(&address, 4000): 2 errno 77 untouched",
        "cuMemFree_v2(kept): 700 errno 77",
        "cuMemFree_v2(0x4242): 1 errno 77",
        "after watched calls: undefined symbol: no_such_thing",
        "look up cuMemAllocAsync 11020 2: 0, why 0, found",
    ] {
        assert!(
            finished.out.contains(said),
            "{said} is not in\n{}",
            finished.out
        );
    }

    // The same run in the record: the failures left nothing behind, and frees of what nobody made are counted.
    let session = place.spooled();
    let process = only(&session);
    let truth = place.truth(process.definition().pid);
    let default_pool: Vec<u64> = truth["live"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|object| object["kind"] == "pool")
        .filter_map(|object| object["handle"].as_u64())
        .collect();
    ledger::assert_equal(
        &ledger::of_driver(&truth, &default_pool),
        &ledger::of_model(process),
    );
    assert!(process.failure_count() >= 10, "{}", process.failure_count());
    // Two frees of 0x4242, the second one of `kept`, the third release of the physical memory, the pool that never was.
    assert_eq!(process.unknown_frees(), 5);
    assert_eq!(process.lost().total(), 0);
}

#[test]
fn rtld_next_is_judged_by_its_true_caller() {
    let place = Place::without_driver();
    let link = |name: &str, more: &[&str]| {
        let soname = format!("-Wl,-soname,{name}");
        let arguments: Vec<&str> = [soname.as_str()].iter().chain(more).copied().collect();
        cc::library("chain.c", &place.driver_folder().join(name), &arguments)
    };
    let libraries = [
        link("liba.so", &[]),
        link("libb.so", &[]),
        link("libc3.so", &["-DLAST"]),
    ];
    let arguments: Vec<String> = libraries
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    arguments.insert(0, "-Wl,--no-as-needed");
    let program = cc::program("chained.c", &place.path("chained"), &arguments);
    let finished = same_with_the_shim(&place, &program, &[]);
    assert_eq!(finished.out, "3 3\n");
}

#[test]
fn names_that_begin_like_the_drivers_are_left_alone() {
    let place = Place::without_driver();
    let library = cc::library("names.c", &place.path("names.so"), &[]);
    let program = cc::program("named.c", &place.path("named"), &[]);
    let library = library.display().to_string();
    let finished = same_with_the_shim(&place, &program, &[&library]);
    assert!(
        finished.out.contains("cudnnCreate 1 0 0\n"),
        "{}",
        finished.out
    );
    assert!(
        finished.out.contains("cuMemAlloc_v2 6 0 0\n"),
        "{}",
        finished.out
    );
}

#[test]
fn a_linked_program_and_another_preloaded_tool_are_served() {
    let place = Place::new();
    let driver = place
        .driver_folder()
        .join("libcuda.so.1")
        .display()
        .to_string();
    let program = cc::program("linked.c", &place.path("linked"), &[&driver]);
    let tool = cc::library("tool.c", &place.path("tool.so"), &[]);
    let mut command = place.plain(&program);
    let mut preload = tool.into_os_string();
    preload.push(":");
    preload.push(artefacts::shim());
    let finished = finish(command.env("LD_PRELOAD", preload)).well();
    assert!(finished.out.contains("well"), "{}", finished.out);
    assert!(finished.out.contains("the tool saw 2"), "{}", finished.out);
    let session = place.spooled();
    assert_eq!(allocations(only(&session)), [12345, 54321]);
}

/// What `forks.c` says of a process: its pid.
#[track_caller]
fn pid_of(said: &str, name: &str) -> (u32, u32) {
    let line = said.lines().find(|line| line.starts_with(name));
    let numbers: Vec<u32> = line
        .expect("the process said who it is")
        .split(' ')
        .skip(1)
        .map(|number| number.parse().expect("a number"))
        .collect();
    (numbers[0], numbers[1])
}

/// A driver that goes on after a fork.
fn place_that_forks() -> (Place, std::path::PathBuf) {
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("plain_driver.c", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let program = cc::program("forks.c", &place.path("forks"), &[]);
    (place, program)
}

#[track_caller]
fn assert_both_records(session: &Session, said: &str) {
    assert_eq!(session.processes.len(), 2, "{:?}", session.notes);
    let (child, its_parent) = pid_of(said, "child");
    let (parent, _) = pid_of(said, "parent");
    assert_eq!(its_parent, parent);
    let process = |pid| session.process(pid).expect("a record of its own");
    assert_eq!(allocations(process(parent)), [2000, 3000]);
    assert_eq!(allocations(process(child)), [7, 700]);
    assert_eq!(process(child).definition().parent, parent);
    assert_eq!(process(child).unknown_frees(), 1, "the parent's memory");
    assert_eq!(process(parent).unknown_frees(), 0);
    for pid in [parent, child] {
        assert!(process(pid).end().is_some_and(|end| end.orderly));
        assert_eq!(process(pid).lost().total(), 0);
    }
}

#[test]
fn a_forked_child_is_a_process_of_its_own_in_a_capture_of_its_own() {
    let (place, program) = place_that_forks();
    let finished = finish(&mut place.preloaded(&program)).well();
    assert_eq!(place.spool_files().len(), 2);
    assert_both_records(&place.spooled(), &finished.out);
}

#[test]
fn a_forked_child_is_a_process_of_its_own_under_gpumem_run() {
    let (place, program) = place_that_forks();
    let finished = finish(&mut place.recorded(&program)).well();
    assert_both_records(&place.recording(), &finished.out);
}

#[test]
fn a_program_that_replaces_itself_is_recorded_anew() {
    let (place, program) = place_that_forks();
    let finished = finish(place.recorded(&program).arg("exec")).well();
    let (pid, _) = pid_of(&finished.out, "again");
    let session = place.recording();
    // What the first program had recorded when it was replaced may or may not have left it; the second is whole.
    let last = session.processes.last().expect("a process");
    assert_eq!(last.definition().pid, pid);
    assert_eq!(allocations(last), [50, 1000, 2000]);
    assert!(last.end().is_some_and(|end| end.orderly));
}
