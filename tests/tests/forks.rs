//! Children of processes with threads: each one's record is its own and whole, and one that allocates nothing has none.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gpumem_tests::ledger::allocations;
use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc};

/// A driver that goes on after a fork.
fn place_that_forks() -> Place {
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("plain_driver.c", &driver, &["-Wl,-soname,libcuda.so.1"]);
    place
}

/// A child that gives back what its parent allocated, as the workers of a DataLoader do, is no process of its own.
#[track_caller]
fn assert_left_alone(place: &Place) {
    let program = cc::program("frees.c", &place.path("frees"), &[]);
    let finished = finish(&mut place.preloaded(program)).well();
    assert!(
        finished
            .out
            .starts_with("child: allocation fails 1, threads 1\nparent "),
        "{}",
        finished.out
    );
    assert_eq!(place.spool_files().len(), 1);
    let session = place.spooled();
    let [process] = &session.processes[..] else {
        panic!("one process: {:?}", session.notes);
    };
    assert_eq!(allocations(process), [1000, 2000]);
    assert_eq!(process.lost().total(), 0);
}

#[test]
fn a_child_that_only_frees_is_left_alone() {
    assert_left_alone(&place_that_forks());
}

#[test]
fn a_child_whose_frees_fail_is_left_alone() {
    assert_left_alone(&Place::new());
}

/// Runs `fork_storm.c`. Each process that says what it allocated has a record with that, and no other process has one.
#[track_caller]
fn storm(how: &str, processes: usize) {
    let place = place_that_forks();
    let program: PathBuf = cc::program("fork_storm.c", &place.path("fork_storm"), &[]);
    let finished = finish(place.preloaded(program).arg(how)).well();
    let said: BTreeMap<u32, usize> = finished
        .out
        .lines()
        .map(|line| {
            let (pid, count) = line.split_once(' ').expect("two numbers");
            (pid.parse().expect("a pid"), count.parse().expect("a count"))
        })
        .collect();
    assert_eq!(said.len(), processes);
    let session = place.spooled();
    let recorded: BTreeMap<u32, usize> = session
        .processes
        .iter()
        .map(|process| (process.definition().pid, allocations(process).len()))
        .collect();
    let differ: Vec<_> = said
        .iter()
        .filter(|(pid, count)| recorded.get(pid) != Some(count))
        .map(|(pid, count)| (pid, count, recorded.get(pid)))
        .collect();
    assert!(differ.is_empty(), "pid, made, recorded: {differ:?}");
    assert_eq!(session.processes.len(), processes, "{:?}", session.notes);
    for process in &session.processes {
        assert_eq!(process.lost().total(), 0);
        assert_eq!(process.unknown_frees(), 0);
        assert!(process.end().is_some_and(|end| end.orderly));
    }
}

#[test]
fn children_whose_first_calls_come_from_several_threads() {
    storm("threads", 61);
}

#[test]
fn children_that_are_forked_while_another_thread_allocates() {
    storm("beside", 31);
}

#[test]
fn children_that_are_forked_while_another_thread_wakes_the_recording() {
    let place = place_that_forks();
    let program = cc::program("fork_in_wake.c", &place.path("fork_in_wake"), &[]);
    let finished = finish(&mut place.preloaded(program)).well();
    let pids: Vec<u32> = finished
        .out
        .lines()
        .map(|line| line.parse().expect("a pid"))
        .collect();
    let (parent, children) = pids.split_last().expect("the program says who it is");
    assert!(!children.is_empty(), "waking asks for memory");
    let session = place.spooled();
    let recorded = |pid: &u32| {
        let process = session.process(*pid);
        process.map(|process| (allocations(process), process.lost().total()))
    };
    for (number, child) in children.iter().enumerate() {
        assert_eq!(
            recorded(child),
            Some((vec![30, 40], 0)),
            "child {number} of {}",
            children.len()
        );
    }
    assert_eq!(recorded(parent), Some((vec![10, 20], 0)));
    assert_eq!(session.processes.len(), pids.len(), "{:?}", session.notes);
}
