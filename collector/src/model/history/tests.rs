//! What history keeps, on lists of births and deaths.

use gpumem_wire::{DeviceOrdinal, Seq, ThreadId};

use super::*;

const HERE: PlaceId = PlaceId(0);

fn object(key: u64, bytes: u64) -> LiveObject {
    LiveObject {
        object: Object::Block,
        key,
        value: key,
        bytes,
        device: DeviceOrdinal(0),
        owner: 0,
        born: Seq(key),
        born_ticks: 0,
        stack: StackId(2),
        thread: ThreadId(1),
        stream: 0,
        references: 1,
        mappings: 0,
    }
}

#[test]
fn rows_cohorts_and_live_tell_the_same_story() {
    let mut history = History::default();
    for step in 0..5u64 {
        history.born(HERE, &object(2 * step, 100), 10 * step);
        history.born(HERE, &object(2 * step + 1, 7), 10 * step + 1);
        history.died(HERE, &object(2 * step + 1, 7), 10 * step + 2);
        history.tick(ClockSource::OptimizerStep, 10 * step + 3);
    }
    let rows = history.rows(HERE, ClockSource::OptimizerStep);
    let valleys: Vec<u64> = rows.iter().map(|(_, row)| row.valley).collect();
    assert_eq!(valleys, [0, 100, 200, 300, 400, 500]);
    assert_eq!(rows[1].1.peak, 207);
    let past = history.place(HERE).unwrap();
    let cohorts: Vec<(u32, u64)> = past
        .cohorts(ClockSource::OptimizerStep)
        .iter()
        .map(|cohort| (cohort.step, cohort.bytes))
        .collect();
    assert_eq!(cohorts, [(0, 100), (1, 100), (2, 100), (3, 100), (4, 100)]);
    assert_eq!((past.live_bytes, past.live_blocks), (500, 5));
}

#[test]
fn nothing_counts_after_the_freeze() {
    let mut history = History::default();
    history.born(HERE, &object(1, 100), 1);
    history.freeze(2);
    history.died(HERE, &object(1, 100), 3);
    history.born(HERE, &object(2, 100), 4);
    history.tick(ClockSource::Backward, 5);
    assert_eq!(history.place(HERE).unwrap().live_bytes, 100);
    assert_eq!(history.ticks(ClockSource::Backward), 0);
    assert_eq!(history.span_ns(), Some((1, 2)));
}

#[test]
fn a_freeze_that_was_lifted_leaves_nothing_behind() {
    let told = |frozen: bool| {
        let mut history = History::default();
        history.born(HERE, &object(1, 100), 1);
        history.born(HERE, &object(2, 50), 2);
        if frozen {
            history.freeze_for_now(3);
        }
        // More ticks than are kept one by one.
        for tick in 0..10_000 {
            history.tick(ClockSource::Backward, 4 + tick);
            if tick == 5 {
                history.died(HERE, &object(1, 100), 10);
            }
        }
        history.tick(ClockSource::Mark, 10_004);
        history.thaw(10_005);
        history.born(HERE, &object(3, 7), 10_006);
        let rows = history.rows(HERE, ClockSource::Backward);
        let past = history.place(HERE).unwrap();
        let counts = (past.live_bytes, past.births, past.deaths);
        let ticks = ClockSource::ALL.map(|source| history.ticks(source));
        (rows, counts, ticks, history.span_ns())
    };
    assert_eq!(told(true), told(false));
    assert_eq!(told(true).1, (57, 3, 1));
}

#[test]
fn an_object_that_lives_on_keeps_its_birth() {
    let mut history = History::default();
    history.born(HERE, &object(1, 100), 1);
    for tick in 2..6 {
        history.tick(ClockSource::Backward, tick);
    }
    history.died(HERE, &object(1, 100), 7);
    assert_eq!(history.place(HERE).unwrap().live_bytes, 0);
    history.restored(HERE, &object(1, 100), 8);
    let past = history.place(HERE).unwrap();
    assert_eq!((past.live_bytes, past.deaths), (100, 0));
    assert_eq!(past.cohorts(ClockSource::Backward)[0].step, 0);
}

#[test]
fn memory_stays_bounded_over_a_million_steps() {
    let mut history = History::default();
    for step in 0..1_000_000u64 {
        history.born(HERE, &object(step, 100 + step % 3), step);
        if step % 2 == 0 {
            history.died(HERE, &object(step, 100 + step % 3), step);
        }
        history.tick(ClockSource::Backward, step);
    }
    let rows = history.rows(HERE, ClockSource::Backward);
    assert!(rows.len() <= 200, "{}", rows.len());
    let past = history.place(HERE).unwrap();
    assert!(past.cohorts(ClockSource::Backward).len() <= 200);
    assert!(past.cohorts_by_birth().len() <= 200);
    assert!(past.repetitions.len() <= 200);
    let steps: u64 = rows.iter().map(|(_, row)| u64::from(row.steps)).sum();
    assert_eq!(steps, 1_000_001);
    let alive: u64 = past
        .cohorts(ClockSource::Backward)
        .iter()
        .map(|cohort| cohort.bytes)
        .sum();
    assert_eq!(alive, past.live_bytes);
    let time = history.step_time(ClockSource::Backward, 500_000).unwrap();
    assert!(time.abs_diff(500_000) < 10, "{time}");
}
