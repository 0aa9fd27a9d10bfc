//! The model on event lists.

use std::collections::BTreeMap;

use gpumem_wire::define::{Anchor, EndDefinition, ProcessDefinition};
use gpumem_wire::{
    ApiId, Definition, DeviceOrdinal, Event, Flags, Kind, Object, Seq, StackId, ThreadId,
};
use proptest::prelude::*;

use crate::model::block::blocks;
use crate::model::exit::ExitReason;
use crate::model::history::ClockSource;
use crate::model::place::{Framework, Layer};
use crate::model::process::{Process, State};
use crate::model::segment::{Owner, segments};
use crate::model::session::Session;
use crate::model::testing::*;

const GPU: DeviceOrdinal = DeviceOrdinal(0);

fn play(steps: impl IntoIterator<Item = Step>) -> Process {
    let mut trace = Trace::new();
    trace.play(steps);
    trace.process()
}

fn live(process: &Process, layer: Layer) -> u64 {
    process
        .totals()
        .get(&GPU)
        .map_or(0, |totals| totals.layer(layer).live_bytes)
}

#[test]
fn each_byte_counts_once_at_the_innermost_layer() {
    let process = play([
        torch_segment(0x1000_0000, 20 * MIB),
        block(0x1000_0000, 4 * MIB).at("train.py:31 step"),
        block(0x1040_0000, MIB).at("train.py:32 step"),
        alloc(0x8000_0000, 32 * MIB).native("libcublas.so.12", "cublasCreate", "", 0),
        block_free(0x1000_0000),
    ]);
    let totals = process.totals()[&GPU];
    assert_eq!(totals.reserved.live_bytes, 52 * MIB);
    assert_eq!(totals.live.live_bytes, 33 * MIB);
    assert_eq!(totals.live.peak_bytes, 37 * MIB);
    assert_eq!(totals.live.peak_time_ns, EPOCH_NS + 4_000_000);
    assert_eq!(live(&process, Layer::TorchBlock), MIB);
    assert_eq!(live(&process, Layer::Device), 52 * MIB);
}

#[test]
fn segments_know_their_owner_and_their_cache() {
    let process = play([
        torch_segment(0x1000_0000, 20 * MIB),
        block(0x1000_0000, 4 * MIB).at("train.py:31"),
        alloc(0x8000_0000, 32 * MIB)
            .native("libcudart.so.12", "cudaMalloc", "", 0)
            .native("libcublas.so.12", "cublasCreate", "", 0),
        block(0xf000_0000, 512).at("train.py:32"),
    ]);
    let seen: Vec<(u64, u64, Owner, u64, u64)> = segments(&process)
        .into_iter()
        .map(|s| (s.address, s.bytes, s.owner, s.live_bytes, s.cached_bytes))
        .collect();
    let torch = Owner::Framework(Framework::Torch);
    assert_eq!(
        seen,
        [
            (0x1000_0000, 20 * MIB, torch.clone(), 4 * MIB, 16 * MIB),
            (
                0x8000_0000,
                32 * MIB,
                Owner::Module("libcublas.so.12".into()),
                32 * MIB,
                0
            ),
            (0xf000_0000, 2 * MIB, torch, 512, 2 * MIB - 512),
        ]
    );
}

#[test]
fn neighbouring_mappings_of_torch_are_one_segment() {
    let process = play([
        torch_physical(7, 2 * MIB),
        torch_map(0x1000_0000, 2 * MIB, 7),
        torch_physical(8, 2 * MIB),
        torch_map(0x1020_0000, 2 * MIB, 8),
        block(0x1010_0000, 2 * MIB).at("train.py:31"),
        unmap(0x1000_0000, 2 * MIB),
        unmap(0x1020_0000, 2 * MIB),
    ]);
    assert!(
        segments(&process)
            .iter()
            .all(|segment| segment.kind.is_none())
    );
    let process = play([
        torch_physical(7, 2 * MIB),
        torch_map(0x1000_0000, 2 * MIB, 7),
        torch_physical(8, 2 * MIB),
        torch_map(0x1020_0000, 2 * MIB, 8),
        block(0x1010_0000, 2 * MIB).at("train.py:31"),
    ]);
    let segments = segments(&process);
    assert_eq!(segments.len(), 1);
    assert_eq!(
        (segments[0].bytes, segments[0].live_bytes),
        (4 * MIB, 2 * MIB)
    );
    let check = process.checks()[&GPU];
    assert_eq!((check.reserved.checks, check.reserved.mismatches), (1, 0));
    assert_eq!(process.totals()[&GPU].live.live_bytes, 2 * MIB);
}

#[test]
fn a_block_makes_a_segment_of_what_it_lies_in() {
    let plugin = || alloc(0x1000_0000, 20 * MIB).native("libplugin.so", "raw_alloc", "p.c", 3);
    let before = play([plugin()]);
    assert_eq!(before.totals()[&GPU].live.live_bytes, 20 * MIB);
    let mut trace = Trace::new();
    trace.play([plugin(), block(0x1000_0000, MIB).at("train.py:31")]);
    // Torch counts the plugin's memory as reserved.
    trace.events_mut()[1].words[3] = 20 * MIB;
    let process = trace.process();
    let totals = process.totals()[&GPU];
    assert_eq!(totals.live.live_bytes, MIB);
    assert_eq!(totals.reserved.live_bytes, 20 * MIB);
    assert_eq!(process.checks()[&GPU].reserved.mismatches, 0);
    let of_driver = blocks(&process)
        .find(|block| block.layer == Layer::Device)
        .expect("the driver's memory");
    assert_eq!(of_driver.segment_of, Some(Framework::Torch));
}

#[test]
fn without_stacks_segments_count_for_what_is_in_use_neither_now_nor_at_the_peak() {
    // Each segment comes right before its first block, or all of them before any.
    for interleaved in [true, false] {
        let segment = |slot: u64| alloc(0x1000_0000 * slot, 20 * MIB);
        let first = |slot: u64| block(0x1000_0000 * slot, 2 * MIB);
        let mut steps = vec![alloc(0x100, MIB)];
        if interleaved {
            steps.extend((1..4).flat_map(|slot| [segment(slot), first(slot)]));
        } else {
            steps.extend((1..4).map(segment));
            steps.extend((1..4).rev().map(first));
        }
        steps.push(free(0x100));
        let process = play(steps);
        let live = process.totals()[&GPU].live;
        assert_eq!((live.live_bytes, live.peak_bytes), (6 * MIB, 7 * MIB));
        assert_eq!(process.totals()[&GPU].reserved.peak_bytes, 61 * MIB);
    }
    // A peak before the segment came stays, and one of the program's own memory.
    let process = play([
        alloc(0x100, 50 * MIB),
        free(0x100),
        alloc(0x1000_0000, 20 * MIB),
        block(0x1000_0000, MIB),
    ]);
    let live = process.totals()[&GPU].live;
    assert_eq!(
        (live.peak_bytes, live.peak_time_ns),
        (50 * MIB, EPOCH_NS + 1_000_000)
    );
}

#[test]
fn without_stacks_a_block_adopts_all_mappings_that_it_lies_in() {
    let mut steps = Vec::new();
    for piece in 0..10u64 {
        steps.push(physical(piece, 2 * MIB));
        steps.push(map(0x1000_0000 + piece * 2 * MIB, 2 * MIB, piece));
        if piece == 2 {
            steps.push(block(0x1000_0000, 5 * MIB));
        }
    }
    steps.push(block(0x1000_0000 + 5 * MIB, 15 * MIB));
    let process = play(steps);
    let totals = process.totals()[&GPU];
    assert_eq!(totals.live.live_bytes, 20 * MIB);
    assert_eq!(totals.live.peak_bytes, 20 * MIB);
    assert_eq!(totals.reserved.live_bytes, 20 * MIB);
}

#[test]
fn stream_ordered_memory_of_torch_is_no_segment() {
    let process = play([pool_alloc(0x1000, MIB).native("libc10_cuda.so", "malloc", "", 0)]);
    assert_eq!(process.totals()[&GPU].live.live_bytes, MIB);
    assert!(
        process
            .places()
            .iter()
            .all(|(_, place)| place.segment_of.is_none())
    );
}

#[test]
fn memory_of_an_allocator_whose_blocks_are_not_seen_is_in_use_and_opaque() {
    let xla = || alloc(0x1000_0000, GIB).native("xla_cuda_plugin.so", "Allocate", "", 0);
    let totals = play([xla()]).totals()[&GPU];
    assert_eq!((totals.live.live_bytes, totals.opaque_bytes), (GIB, GIB));
    let totals = play([xla(), free(0x1000_0000)]).totals()[&GPU];
    assert_eq!((totals.live.live_bytes, totals.opaque_bytes), (0, 0));
    // A torch block in it says that it is torch's, whose blocks are seen.
    let totals = play([xla(), block(0x1000_0000, MIB)]).totals()[&GPU];
    assert_eq!((totals.live.live_bytes, totals.opaque_bytes), (MIB, 0));
}

#[test]
fn time_never_runs_backwards() {
    let mut trace = Trace::new();
    trace.play([mark("a"), mark("b")]);
    trace.events_mut()[1].time = 0;
    let process = trace.process();
    assert_eq!(process.marks()[0].time_ns, process.marks()[1].time_ns);
}

#[test]
fn an_impossible_size_is_an_event_that_was_lost() {
    let process = play([alloc(0x1000, 1 << 50), alloc(0x2000, MIB)]);
    assert_eq!(process.lost().total(), 1);
    assert_eq!(live(&process, Layer::Device), MIB);
}

#[test]
fn an_allocator_that_is_switched_off_has_no_segments() {
    let mut trace = Trace::new();
    trace.push(torch_segment(0x1000_0000, MIB));
    let mut process = Process::default();
    process.define(Definition::Process(ProcessDefinition {
        environment: vec![("PYTORCH_NO_CUDA_MEMORY_CACHING".into(), "1".into())],
        ..ProcessDefinition::default()
    }));
    for definition in &trace.definitions()[1..] {
        process.define(definition.clone());
    }
    trace.events().iter().for_each(|event| process.apply(event));
    assert_eq!(process.totals()[&GPU].live.live_bytes, MIB);
    let cached = trace.process();
    assert_eq!(cached.totals()[&GPU].live.live_bytes, 0);
}

#[test]
fn a_program_that_ran_another_in_its_place_was_not_killed() {
    let mut session = Session::default();
    for nonce in [1, 2] {
        let mut process = Process::default();
        process.define(Definition::Process(ProcessDefinition {
            pid: 7,
            nonce,
            ..ProcessDefinition::default()
        }));
        process.set_state(State::Killed);
        session.processes.push(process);
    }
    session.end_replaced();
    let states: Vec<State> = session.processes.iter().map(Process::state).collect();
    assert_eq!(states, [State::Ended, State::Killed]);
}

#[test]
fn torch_s_totals_are_checked_at_every_block() {
    let mut trace = Trace::new();
    trace.play([
        torch_segment(0x1000_0000, 20 * MIB),
        block(0x1000_0000, MIB),
        block(0x1010_0000, MIB),
        block_free(0x1000_0000),
        block(0x1020_0000, MIB),
    ]);
    let process = trace.process();
    let check = process.checks()[&GPU];
    assert_eq!((check.allocated.checks, check.allocated.mismatches), (4, 0));
    assert_eq!((check.reserved.checks, check.reserved.mismatches), (4, 0));
    // One block event that never arrives is one mismatch, whatever follows.
    trace.events_mut().remove(2);
    let check = trace.process().checks()[&GPU];
    assert_eq!((check.allocated.checks, check.allocated.mismatches), (3, 1));
    assert_eq!(check.allocated.offset_bytes, i128::from(MIB));
}

#[test]
fn a_free_that_failed_leaves_all_sums_as_they_were() {
    let before = play([alloc(0x1000, MIB).at("a.py:1")]);
    let after = play([alloc(0x1000, MIB).at("a.py:1"), free(0x1000), undone()]);
    assert_eq!(before.totals(), after.totals());
    let process = play([alloc(0x1000, MIB).at("a.py:1"), free(0x2000)]);
    assert_eq!(process.unknown_frees(), 1);
}

#[test]
fn places_are_told_apart_by_python_frames_alone_where_there_are_some() {
    let process = play([
        block(0x1000, 1)
            .native("libx.so", "one", "", 0)
            .at("a.py:1 f"),
        block(0x2000, 1)
            .native("libx.so", "two", "", 0)
            .at("a.py:1 f"),
        block(0x3000, 1)
            .native("libx.so", "two", "", 0)
            .at("a.py:2 f"),
        block(0x4000, 1).native("libx.so", "two", "", 0),
        block(0x5000, 1).native("libx.so", "one", "", 0),
        block(0x6000, 1).native("libx.so", "one", "", 0).device(1),
    ]);
    let mut places: Vec<u32> = {
        let mut seen: Vec<_> = blocks(&process).map(|b| (b.address, b.place.0)).collect();
        seen.sort_unstable();
        seen.into_iter().map(|(_, place)| place).collect()
    };
    assert_eq!(places[0], places[1]);
    places.dedup();
    assert_eq!(places.len(), 5);
}

#[test]
fn the_live_set_is_frozen_at_the_first_sign_of_the_end() {
    let allocated = || [context(), alloc(0x1000, MIB).at("a.py:1")];
    for (last, reason) in [
        (finalising(), ExitReason::Finalising),
        (exit_handler(), ExitReason::ExitHandler),
        (context_destroy(), ExitReason::LastContext),
        (
            free(0x1000).flags(Flags::FINALISING),
            ExitReason::Finalising,
        ),
    ] {
        let process = play(
            allocated()
                .into_iter()
                .chain([last, free(0x1000), exit_handler()]),
        );
        let at_exit = process.at_exit().expect("a frozen set");
        assert_eq!(at_exit.reason, reason);
        assert_eq!(at_exit.totals[&GPU].live.live_bytes, MIB);
        assert_eq!(at_exit.time_ns, EPOCH_NS + 3_000_000);
        assert_eq!(process.totals()[&GPU].live.live_bytes, 0);
    }
    assert!(play([context(), context_destroy()]).at_exit().is_none());
}

/// A program that resets its device at first, and then makes something at one place twenty times.
fn reset_and_go_on(reset: bool, end: Vec<Step>) -> Process {
    let mut steps = vec![
        event(Kind::PrimaryRetain, [CONTEXT, 0, 0, 0]),
        alloc(0x1000, MIB).at("a.py:1 warm_up"),
        alloc(0x2000, MIB).at("a.py:1 warm_up"),
        free(0x1000),
    ];
    // Either the reset takes along what is left, or the program frees it at that very time.
    steps.push(if reset {
        event(Kind::PrimaryReset, [0; 4])
    } else {
        free(0x2000)
    });
    steps.push(mark("again"));
    steps.push(event(Kind::PrimaryRetain, [CONTEXT, 0, 0, 0]));
    steps.extend((1..=20).map(|slot| alloc(slot * GIB, MIB).at("a.py:9 keep")));
    steps.extend(end);
    play(steps)
}

#[test]
fn a_reset_is_not_the_end_of_a_program_that_goes_on() {
    let process = reset_and_go_on(true, Vec::new());
    assert!(process.at_exit().is_none());
    let same = reset_and_go_on(false, Vec::new());
    let pasts = |process: &Process| {
        let history = process.history();
        let of = |(id, _)| {
            let rows = history.rows(id, ClockSource::Mark);
            format!("{rows:?} {:?}", history.place(id))
        };
        let pasts: Vec<String> = history.places().map(of).collect();
        (pasts, history.ticks(ClockSource::Mark), history.span_ns())
    };
    assert_eq!(pasts(&process), pasts(&same));
    assert_eq!(process.history().ticks(ClockSource::Mark), 1);
    let process = reset_and_go_on(true, vec![exit_handler(), context_destroy()]);
    let at_exit = process.at_exit().expect("a frozen set");
    assert_eq!(at_exit.reason, ExitReason::ExitHandler);
    assert_eq!(at_exit.totals[&GPU].live.live_bytes, 20 * MIB);
}

#[test]
fn whatever_comes_to_life_after_the_last_context_lifts_the_freeze() {
    for (next, lifts) in [
        (context(), true),
        (alloc(0x5000, MIB), true),
        (pool_alloc(0x5000, MIB), true),
        (block(0x5000, MIB), true),
        (undone(), true),
        (event(Kind::Reserve, [0x5000, MIB, 0, 0]), false),
        (mark("later"), false),
        (free(0x9000), false),
    ] {
        let shown = format!("{next:?}");
        let steps = [context(), alloc(0x1000, MIB), context_destroy(), next];
        let process = play(steps.clone());
        assert_eq!(process.at_exit().is_none(), lifts, "{shown}");
        assert_eq!(process.history().frozen_ns().is_none(), lifts, "{shown}");
        // Once the program has said that it ends, nothing lifts it.
        let [made, memory, destroyed, next] = steps;
        for said in [exit_handler(), finalising()] {
            let end = [made.clone(), memory.clone(), destroyed.clone(), said];
            let process = play(end.into_iter().chain([next.clone()]));
            let reason = process.at_exit().map(|at_exit| at_exit.reason);
            assert_eq!(reason, Some(ExitReason::LastContext), "{shown}");
        }
    }
}

#[test]
fn a_context_destroy_that_failed_leaves_all_as_it_was() {
    let before = play([context(), alloc(0x1000, MIB).at("a.py:1")]);
    let steps = [
        context(),
        alloc(0x1000, MIB).at("a.py:1"),
        context_destroy(),
    ];
    let after = play(steps.into_iter().chain([undone()]));
    assert_eq!(after.at_exit(), None);
    assert_eq!(before.totals(), after.totals());
    let past = |process: &Process| {
        let (_, past) = process.history().places().next().expect("a place");
        (past.live_bytes, past.live_blocks, past.births, past.deaths)
    };
    assert_eq!(past(&before), past(&after));
}

#[test]
fn a_context_that_was_never_seen_is_not_the_last_to_go() {
    let other = |owner: u64| event(Kind::DeviceAlloc, [0x8000, MIB, owner, MIB]);
    for owner in [0, 0xbeef] {
        let process = play([
            other(owner),
            context(),
            alloc(0x1000, MIB),
            context_destroy(),
        ]);
        assert!(process.at_exit().is_none(), "{owner:x}");
        assert_eq!(live(&process, Layer::Device), MIB);
    }
}

#[test]
fn only_a_root_backward_is_a_step() {
    let process = play([
        backward_begin().thread(1),
        backward_begin().thread(2),
        backward_end().thread(2),
        backward_end().thread(1),
        backward_begin().thread(1),
        backward_end().thread(1),
        optimizer_step(),
        zero_grad(),
        dataloader_next(),
        mark("epoch"),
    ]);
    let steps = process.steps();
    assert_eq!((steps.backwards, steps.optimizer_steps), (2, 1));
    assert_eq!((steps.zero_grads, steps.batches, steps.marks), (1, 1, 1));
    assert_eq!(
        process.definitions().mark(process.marks()[0].id),
        Some("epoch")
    );
}

#[test]
fn what_was_lost_is_counted_once() {
    let mut trace = Trace::new();
    trace.push(gap(2, 1));
    trace.define(Definition::End(EndDefinition {
        time_ns: EPOCH_NS,
        orderly: true,
        lost_events: 5,
    }));
    let mut process = trace.process();
    assert_eq!(process.lost().total(), 5);
    assert_eq!(process.state(), State::Ended);
    process.set_state(State::Killed);
    assert_eq!(process.state(), State::Ended);
}

#[test]
fn failures_say_what_was_asked_and_what_was_there() {
    let process = play([
        alloc(0x1000, MIB),
        event(Kind::AllocFailed, [GIB, 2, 2, 0]).at("a.py:1"),
    ]);
    let failure = process.failures()[0];
    assert_eq!((failure.requested_bytes, failure.live_bytes), (GIB, MIB));
    assert_ne!(failure.stack, StackId::NONE);
}

/// Any event on a small space of addresses and handles, right or wrong.
fn any_step() -> impl Strategy<Value = Step> {
    let address = (0u64..8).prop_map(|slot| 0x10_0000 * (slot + 1));
    let bytes = prop_oneof![Just(0u64), 1..0x18_0000u64];
    (0..14u8, address, bytes, 0u64..4, 1u32..3, 0u8..3).prop_map(
        |(what, address, bytes, handle, thread, stack)| {
            let step = match what {
                0 => alloc(address, bytes),
                1 => free(address),
                2 => pool_alloc(address, bytes),
                3 => managed(address, bytes),
                4 => physical(handle, bytes),
                5 => map(address, bytes, handle),
                6 => unmap(address, bytes),
                7 => release(handle),
                8 => block(address, bytes),
                9 => block_free(address),
                10 => undone(),
                11 => context(),
                12 => context_destroy(),
                _ => event(Kind::PhysicalRetain, [handle, 0, 0, 0]),
            };
            let step = step.thread(thread);
            match stack {
                0 => step,
                1 => step.at("train.py:31 step"),
                _ => step.native("libc10_cuda.so", "malloc", "", 0),
            }
        },
    )
}

proptest! {
    /// Whatever comes, the totals are the sums of what the rule table holds alive, and every object has its place.
    #[test]
    fn sums_of_parts_equal_totals(steps in prop::collection::vec(any_step(), 1..200)) {
        let process = play(steps);
        let mut layers: BTreeMap<(DeviceOrdinal, Layer), u64> = BTreeMap::new();
        let (mut in_use, mut reserved) = (0, 0);
        let mut count = 0;
        for block in blocks(&process) {
            count += 1;
            *layers.entry((block.device, block.layer)).or_default() += block.bytes;
            if block.layer != Layer::TorchBlock {
                reserved += block.bytes;
            }
            if block.segment_of.is_none() {
                in_use += block.bytes;
            }
        }
        let holding = process.live().iter().filter(|object| Layer::of(object.object).is_some()).count();
        prop_assert_eq!(count, holding);
        let totals = process.totals().get(&GPU).copied().unwrap_or_default();
        for layer in Layer::ALL {
            let sum = layers.get(&(GPU, layer)).copied().unwrap_or(0);
            prop_assert_eq!(totals.layer(layer).live_bytes, sum, "{:?}", layer);
            prop_assert!(totals.layer(layer).peak_bytes >= sum);
        }
        prop_assert_eq!(totals.live.live_bytes, in_use);
        prop_assert_eq!(totals.reserved.live_bytes, reserved);
        prop_assert_eq!(totals.live.live_objects + totals.reserved.live_objects >= count as u64, true);
        // Segments never overlap, and hold every block once.
        let segments = segments(&process);
        for pair in segments.windows(2) {
            let both_real = pair.iter().all(|segment| segment.kind.is_some());
            prop_assert!(!both_real || pair[0].address + pair[0].bytes <= pair[1].address);
        }
        let held: u64 = segments.iter().map(|segment| segment.live_blocks).sum();
        let alive = process.live().iter().filter(|object| object.object == Object::Block).count();
        prop_assert_eq!(held, alive as u64);
    }

    /// An allocator that keeps its own books agrees with ours at every event.
    #[test]
    fn books_kept_by_the_allocator_always_agree(operations in prop::collection::vec((0u64..20, 1u64..64, any::<bool>()), 1..200)) {
        let mut trace = Trace::new();
        trace.push(torch_segment(0x1000_0000, 20 * MIB));
        let mut live = std::collections::BTreeSet::new();
        for (slot, sectors, torch_frees) in operations {
            let address = 0x1000_0000 + slot * MIB;
            if live.insert(address) {
                trace.push(block(address, sectors * 512).at("train.py:31"));
            } else if torch_frees {
                live.remove(&address);
                trace.push(block_free(address));
            }
        }
        let check = trace.process().checks()[&GPU];
        prop_assert!(check.allocated.checks > 0);
        prop_assert_eq!((check.allocated.mismatches, check.reserved.mismatches), (0, 0));
    }

    /// Nothing that a stream can say makes the model stop.
    #[test]
    fn any_event_is_survived(
        events in prop::collection::vec(
            (0u16..120, any::<[Word; 4]>(), any::<Word>(), -3i16..3, any::<u16>(), 0u32..4),
            1..60,
        ),
        anchors in prop::collection::vec(any::<[Word; 3]>(), 0..3),
    ) {
        let mut process = Process::default();
        for [ticks, monotonic, realtime] in anchors {
            process.anchor(Anchor { ticks: ticks.0, monotonic_ns: monotonic.0, realtime_ns: realtime.0 });
        }
        for (seq, (kind, words, time, device, flags, thread)) in (1..).zip(events) {
            process.apply(&Event {
                seq: Seq(seq),
                time: time.0,
                thread: ThreadId(thread),
                stack: StackId(thread),
                kind,
                api: ApiId(0),
                device: DeviceOrdinal(device),
                flags: Flags(flags),
                words: words.map(|word| word.0),
            });
        }
        let alive = process.live().len();
        prop_assert!(blocks(&process).count() <= alive);
        segments(&process);
    }
}

/// A word as a hostile stream would choose it: small and equal to others, or at the edge of what fits.
#[derive(Clone, Copy, Debug)]
struct Word(u64);

impl Arbitrary for Word {
    type Parameters = ();
    type Strategy = BoxedStrategy<Self>;

    fn arbitrary_with((): ()) -> Self::Strategy {
        prop_oneof![0u64..6, (u64::MAX - 4)..=u64::MAX, any::<u64>()]
            .prop_map(Word)
            .boxed()
    }
}
