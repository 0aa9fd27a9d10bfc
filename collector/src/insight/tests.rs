//! What no real program does, and a hostile capture may: figures at the edge of what fits.

use gpumem_wire::{DeviceOrdinal, Event, Kind, Seq};

use crate::insight::leaks::leaks;
use crate::model::testing::{Trace, alloc, block, mark};
use crate::model::{Process, Session};

fn session(process: Process) -> Session {
    let mut session = Session::default();
    session.processes.push(process);
    session
}

#[test]
fn no_sum_of_bytes_ever_wraps() {
    // More than an address space of a GPU holds, 2^17 times and once more: the true sums are above 2^64.
    const HUGE: u64 = 1 << 47;
    let mut trace = Trace::new();
    let mut process = Process::default();
    for definition in trace.definitions() {
        process.define(definition.clone());
    }
    trace.play([
        alloc(0, 1).at("a.py:1"),
        block(0, 1).at("a.py:1"),
        mark("a"),
    ]);
    for definition in trace.definitions() {
        process.define(definition.clone());
    }
    let [driver, framework, tick] = [0, 1, 2].map(|index: usize| trace.events()[index]);
    let mut number = 0;
    let mut apply = |like: Event, kind: Kind, words: [u64; 4]| {
        number += 1;
        process.apply(&Event {
            seq: Seq(number),
            time: number * 1_000_000,
            kind: kind as u16,
            words,
            ..like
        });
    };
    for slot in 0..(1u64 << 17) + 1 {
        let at = (slot + 1) * 0x1000;
        // At one place all stays, at the other it comes and goes.
        apply(driver, Kind::PhysicalCreate, [at, HUGE, 1, 0]);
        apply(framework, Kind::BlockAlloc, [at, HUGE, 0, 0]);
        apply(framework, Kind::BlockFree, [at, 0, 0, 0]);
        if slot % 1000 == 0 {
            apply(tick, Kind::Mark, [0; 4]);
        }
    }
    let allocated: Vec<u64> = process
        .history()
        .places()
        .map(|(_, past)| past.allocated_bytes)
        .collect();
    assert_eq!(allocated, [u64::MAX, u64::MAX]);
    let session = session(process);
    let report = leaks(&session);
    assert!(report.processes[0].live_bytes > u64::MAX - 2 * HUGE);
    assert_eq!(report.processes[0].peak_bytes, u64::MAX);
    let ps = crate::insight::ps::ps(&session);
    assert_eq!(ps.processes[0].reserved_bytes, u64::MAX);
}

#[test]
fn devices_beyond_what_a_host_can_have_are_one_unknown_device() {
    let mut trace = Trace::new();
    for device in 0..500 {
        trace.push(alloc(0x1000 * (device as u64 + 1), 4096).device(device));
        trace.push(alloc(0x90_0000 + 0x1000 * (device as u64), 4096).device(-device));
    }
    let session = session(trace.process());
    let devices: Vec<i16> = session.processes[0]
        .totals()
        .keys()
        .map(|device| device.0)
        .collect();
    let mut want = vec![DeviceOrdinal::UNKNOWN.0, DeviceOrdinal::HOST.0];
    want.sort_unstable();
    want.extend(0..64);
    assert_eq!(devices, want);
    assert_eq!(session.processes[0].definitions().devices().count(), 64);
    let live: u64 = session.processes[0]
        .totals()
        .values()
        .map(|totals| totals.live.live_bytes)
        .sum();
    assert_eq!(live, 1000 * 4096);
    assert_eq!(leaks(&session).processes.len(), want.len());
}
