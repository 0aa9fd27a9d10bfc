//! Leaks on event lists: what each kind of program must be told, and what a healthy one must not.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use gpumem_wire::define::DeviceDefinition;
use gpumem_wire::{Definition, Flags};

use super::*;
use crate::model::testing::{
    KIB, MIB, Step, Trace, alloc, backward_begin, backward_end, block, block_free, exit_handler,
    finalising, free, optimizer_step, physical, pool_alloc, torch_segment,
};

/// A program on a trace: hands out addresses and remembers what to free.
#[derive(Default)]
struct Program {
    trace: Trace,
    next: u64,
}

impl Program {
    fn new() -> Self {
        Self {
            trace: Trace::new(),
            next: 0x7000_0000_0000,
        }
    }

    fn address(&mut self, bytes: u64) -> u64 {
        let at = self.next;
        self.next += bytes.next_multiple_of(512);
        at
    }

    fn block(&mut self, bytes: u64, place: &str) -> u64 {
        let at = self.address(bytes);
        self.trace
            .push(block(at, bytes).at(place).at("train.py:90 main"));
        at
    }

    fn free(&mut self, at: u64) {
        self.trace.push(block_free(at));
    }

    fn pause(&mut self, milliseconds: u64) {
        self.trace.push(
            crate::model::testing::event(gpumem_wire::Kind::BackwardEnd, [0; 4])
                .after_ms(milliseconds),
        );
    }

    fn push(&mut self, step: Step) {
        self.trace.push(step);
    }

    fn report(&self) -> LeaksReport {
        let mut session = Session::default();
        session.processes.push(self.trace.process());
        leaks(&session)
    }

    fn row(&self) -> ProcessLeaks {
        self.report().processes.remove(0)
    }
}

fn line(leak: &Leak) -> Option<u32> {
    leak.site.as_ref()?.line
}

/// A training job with nothing wrong: weights, gradients, optimizer state, activations of varying length, an evaluation every
/// fifth step, two batches in flight, a cache per shape.
struct Training {
    seed: u64,
    layers: u64,
    accumulate: u64,
    optimizer: bool,
    grads: Vec<u64>,
    in_flight: Vec<u64>,
    shapes: Vec<u64>,
    state: bool,
}

impl Training {
    fn new(seed: u64) -> Self {
        Self {
            seed: seed | 1,
            layers: 2 + seed % 5,
            accumulate: 1 + seed / 5 % 4,
            optimizer: !seed.is_multiple_of(7),
            grads: Vec::new(),
            in_flight: Vec::new(),
            shapes: Vec::new(),
            state: false,
        }
    }

    fn random(&mut self, below: u64) -> u64 {
        // xorshift64
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        self.seed % below
    }

    fn weights(&mut self, program: &mut Program) {
        let segment = program.address(64 * MIB);
        program.push(torch_segment(segment, 64 * MIB));
        for _ in 0..self.layers * 4 {
            program.block(MIB, "model.py:12 Layer.__init__");
        }
    }

    fn step(&mut self, program: &mut Program, number: u64) {
        program.pause(20);
        let length = 1 + self.random(7);
        let batch = program.block(length * 256 * KIB, "data.py:7 to_device");
        self.in_flight.push(batch);
        if self.in_flight.len() > 2 {
            let oldest = self.in_flight.remove(0);
            program.free(oldest);
        }
        if !self.shapes.contains(&length) {
            self.shapes.push(length);
            program.block(length * 64 * KIB, "model.py:40 rotary_cache");
        }
        let mut saved = Vec::new();
        for layer in 0..self.layers {
            saved.push(program.block(
                length * 512 * KIB,
                &format!("model.py:{} forward", 20 + layer),
            ));
            let temporary = program.block(length * 128 * KIB, "model.py:30 forward");
            program.free(temporary);
        }
        program.push(backward_begin());
        let first = self.grads.is_empty();
        while let Some(at) = saved.pop() {
            if first {
                let gradient = program.block(MIB, "train.py:44 train_step");
                self.grads.push(gradient);
            }
            program.free(at);
        }
        program.push(backward_end());
        if number % self.accumulate == self.accumulate - 1 {
            if self.optimizer {
                program.push(optimizer_step());
            }
            if !self.state {
                self.state = true;
                for _ in 0..2 * self.layers {
                    program.block(MIB, "adamw.py:130 _init_group");
                }
            }
            for at in std::mem::take(&mut self.grads) {
                program.free(at);
            }
        }
        if number % 5 == 4 {
            let outputs: Vec<u64> = (0..3 + self.random(4))
                .map(|_| program.block(2 * MIB, "eval.py:9 evaluate"))
                .collect();
            for at in outputs {
                program.free(at);
            }
        }
    }
}

/// A server with nothing wrong and no clock: weights, then requests whose cache grows token by token.
fn serve(program: &mut Program, seed: u64, requests: u64, mut leak: impl FnMut(&mut Program)) {
    for _ in 0..12 {
        program.block(4 * MIB, "load.py:5 load_layer");
        program.pause(2 + seed % 5);
    }
    for request in 0..requests {
        program.pause(30);
        let mut cache = program.block(64 * KIB, "serve.py:10 serve_request");
        for token in 1..20 + 5 * ((request + seed) % 3) {
            let scratch = program.block(64 * KIB, "serve.py:12 serve_request");
            let larger = program.block((token + 1) * 64 * KIB, "serve.py:13 serve_request");
            program.free(cache);
            program.free(scratch);
            cache = larger;
        }
        program.free(cache);
        leak(program);
    }
}

#[test]
fn a_block_kept_each_step_is_growing_with_its_bytes() {
    let (mut program, mut training) = (Program::new(), Training::new(11));
    training.weights(&mut program);
    for number in 0..40 {
        training.step(&mut program, number);
        program.block(4 * MIB, "train.py:31 train_step");
    }
    program.push(finalising());
    let row = program.row();
    assert_eq!(row.leaks.len(), 1, "{:#?}", row.leaks);
    let leak = &row.leaks[0];
    assert_eq!((leak.kind, line(leak)), (LeakKind::Growing, Some(31)));
    assert_eq!(leak.clock, row.clock.kind);
    assert!(leak.still_growing && leak.since.step <= 2);
    assert_eq!(leak.live_bytes, 160 * MIB);
    assert!(row.growth_explained.unwrap() > 0.97, "{row:?}");
    let steps = 40 / row.clock.steps.unwrap();
    let want = 4 * MIB * steps.max(1);
    assert!(leak.bytes_per_step.abs_diff(want) <= want / 50);
    assert!(row.full_in.unwrap().steps.unwrap() > 1000);
}

#[test]
fn leaks_without_a_common_step_still_fill_the_device_at_some_time() {
    // 1 GiB is free at most; each leak takes 1 MiB every 100 ms.
    for (leaks, steps, seconds) in [(1, true, 98), (2, false, 47)] {
        let mut program = Program::new();
        for _ in 0..40 {
            for line in 0..leaks {
                let at = program.address(MIB);
                let place = format!("a.py:{} keep", 10 + line);
                let wait = if line == 0 { 99 } else { 1 };
                program.push(alloc(at, MIB).at(&place).after_ms(wait));
            }
            program.pause(u64::from(leaks == 1));
        }
        program.trace.define(Definition::Device(DeviceDefinition {
            ordinal: 0,
            total_bytes: 1024 * MIB,
            ..DeviceDefinition::default()
        }));
        let row = program.row();
        assert_eq!(row.leaks.len(), leaks, "{row:#?}");
        let full = row.full_in.expect("an outlook");
        assert_eq!(full.steps.is_some(), steps);
        let found = full.seconds.expect("seconds");
        assert!(found.abs_diff(seconds) <= 5, "{found}");
        let json = serde_json::to_value(full).expect("json");
        assert_eq!(json["steps"].is_null(), !steps);
    }
}

#[test]
fn a_retained_graph_is_shown_at_its_line_with_all_its_bytes() {
    let mut program = Program::new();
    for _ in 0..30 {
        program.pause(20);
        program.block(4 * MIB, "train.py:14 inner_problem");
        program.push(backward_begin());
        // Made on the autograd thread: no Python frame.
        let at = program.address(4 * MIB);
        program.push(block(at, 4 * MIB).thread(2).native(
            "libtorch_cuda.so",
            "at::native::mul_kernel_cuda",
            "",
            0,
        ));
        let at = program.address(512);
        program.push(block(at, 512).thread(2).native(
            "libtorch_cuda.so",
            "at::native::sum_kernel_cuda",
            "",
            0,
        ));
        program.push(backward_end());
    }
    let row = program.row();
    assert_eq!(row.leaks.len(), 1, "{:#?}", row.leaks);
    let leak = &row.leaks[0];
    assert_eq!((leak.bytes_per_step, line(leak)), (8 * MIB + 512, Some(14)));
    assert_eq!(
        leak.sites
            .iter()
            .map(|share| share.bytes_per_step)
            .sum::<u64>(),
        8 * MIB + 512
    );
}

#[test]
fn a_cache_with_a_limit_is_retained() {
    let mut program = Program::new();
    let mut cache = Vec::new();
    for _ in 0..24 {
        program.pause(50);
        cache.push(program.block(16 * MIB, "cache.py:20 __init__"));
        if cache.len() > 16 {
            let oldest = cache.remove(0);
            program.free(oldest);
        }
    }
    program.push(finalising());
    let leak = &program.row().leaks[0];
    assert_eq!((leak.kind, leak.still_growing), (LeakKind::Retained, false));
    assert_eq!(leak.bytes_per_step, 16 * MIB);
}

/// However short a part of the run it was.
#[test]
fn a_cycle_that_the_collector_freed_is_retained() {
    for collected in [true, false] {
        let mut program = Program::new();
        program.block(MIB, "start.py:1");
        program.pause(2000);
        let mut cycle = Vec::new();
        for _ in 0..20 {
            program.pause(50);
            cycle.push(program.block(16 * MIB, "hook.py:22 __init__"));
        }
        for at in cycle {
            let flags = if collected {
                Flags::DURING_GC
            } else {
                Flags::default()
            };
            program.push(block_free(at).flags(flags));
        }
        program.push(finalising());
        let row = program.row();
        let kinds: Vec<LeakKind> = row.leaks.iter().map(|leak| leak.kind).collect();
        let expected: &[LeakKind] = if collected {
            &[LeakKind::Retained]
        } else {
            &[]
        };
        assert_eq!(kinds, expected);
        if collected {
            assert!(
                row.leaks[0].why.contains("cycle collector"),
                "{}",
                row.leaks[0].why
            );
        }
    }
}

#[test]
fn memory_that_waits_to_be_dropped_at_once_is_retained() {
    let mut program = Program::new();
    let mut cycle = Vec::new();
    for _ in 0..20 {
        program.pause(50);
        cycle.push(program.block(16 * MIB, "hook.py:22 __init__"));
    }
    for at in cycle {
        program.free(at);
    }
    program.push(finalising());
    let leak = &program.row().leaks[0];
    assert_eq!((leak.kind, leak.live_bytes), (LeakKind::Retained, 0));
    assert_eq!(
        (leak.bytes_per_step, leak.max_live_bytes),
        (16 * MIB, 320 * MIB)
    );
}

#[test]
fn a_few_blocks_that_are_kept_were_not_made_once() {
    let mut program = Program::new();
    for _ in 0..3 {
        program.pause(50);
        program.block(16 * MIB, "few.py:7 load");
    }
    program.push(finalising());
    let row = program.row();
    assert!(row.leaks.is_empty());
    let kinds: Vec<HarmlessKind> = row.not_leaks.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [HarmlessKind::Kept]);
    assert!(
        row.not_leaks[0].why.starts_with("3 blocks made here"),
        "{:?}",
        row.not_leaks
    );
}

#[test]
fn a_list_in_a_program_without_a_clock_grows_by_its_own_repetitions() {
    let mut program = Program::new();
    for _ in 0..20 {
        program.pause(50);
        program.block(16 * MIB, "list.py:15 step");
    }
    program.push(finalising());
    let row = program.row();
    let leak = &row.leaks[0];
    assert_eq!(
        (leak.kind, leak.clock),
        (LeakKind::Growing, ClockKind::Repetition)
    );
    assert_eq!(leak.bytes_per_step, 16 * MIB);
    assert_eq!((row.clock.steps, row.growth_explained), (None, Some(1.0)));
}

#[test]
fn a_program_that_takes_its_time_to_end_was_still_growing() {
    let mut program = Program::new();
    for _ in 0..20 {
        program.pause(50);
        program.block(16 * MIB, "list.py:15 step");
    }
    program.push(finalising().after_ms(250));
    let row = program.row();
    assert_eq!(row.leaks[0].kind, LeakKind::Growing);
    assert_eq!(row.leaks[0].bytes_per_step, 16 * MIB);
}

#[test]
fn layers_that_are_built_one_by_one_and_then_used_are_no_leak() {
    // Used without another allocation, and used with allocations that come and go.
    for busy in [false, true] {
        let mut program = Program::new();
        for _ in 0..20 {
            program.pause(50);
            program.block(16 * MIB, "model.py:15 build");
        }
        for _ in 0..if busy { 8 } else { 0 } {
            let at = program.block(MIB, "model.py:40 use");
            program.pause(50);
            program.free(at);
        }
        program.push(finalising().after_ms(if busy { 1 } else { 600 }));
        assert!(
            program.row().leaks.is_empty(),
            "{busy}: {:?}",
            program.row().leaks
        );
    }
}

#[test]
fn a_model_moved_in_bursts_is_one_repetition_each() {
    let mut program = Program::new();
    for _ in 0..10 {
        program.pause(500);
        for _ in 0..100 {
            let at = program.address(MIB);
            program.push(block(at, MIB).at("move.py:8 switch").after_ms(0));
        }
    }
    program.push(finalising());
    let leak = &program.row().leaks[0];
    assert_eq!(
        (leak.bytes_per_step, leak.kind),
        (100 * MIB, LeakKind::Growing)
    );
}

#[test]
fn driver_memory_that_is_never_freed_is_unfreed() {
    type Make = fn(u64, u64) -> Step;
    for (make, steps, layer) in [
        (alloc as Make, 20, "device"),
        (pool_alloc as Make, 4, "pool"),
        (physical as Make, 20, "physical"),
    ] {
        let mut program = Program::new();
        let weights = program.address(MIB);
        program.push(alloc(weights, 64 * MIB).native("app", "load", "app.c", 3));
        for _ in 0..steps {
            program.pause(50);
            let scratch = program.address(16 * MIB);
            program.push(alloc(scratch, 16 * MIB).native("app", "work", "app.c", 20));
            program.push(free(scratch));
            let at = program.address(8 * MIB);
            program.push(make(at, 8 * MIB).native("app", "lose", "app.c", 10));
        }
        program.pause(50);
        program.push(exit_handler());
        let row = program.row();
        assert_eq!(row.leaks.len(), 1, "{:#?}", row.leaks);
        let leak = &row.leaks[0];
        assert_eq!((leak.kind, leak.layer), (LeakKind::Unfreed, layer));
        assert_eq!((leak.bytes_per_step, line(leak)), (8 * MIB, Some(10)));
        assert_eq!(leak.live_blocks, steps);
        let advice = leak.advice.as_deref().unwrap();
        assert_eq!(
            advice.contains("cuMemRelease"),
            layer == "physical",
            "{advice}"
        );
    }
}

#[test]
fn buffers_made_when_a_program_starts_are_not_unfreed() {
    let mut program = Program::new();
    for _ in 0..12 {
        let at = program.address(8 * MIB);
        program.push(alloc(at, 8 * MIB).native("app", "load", "app.c", 3));
    }
    for _ in 0..50 {
        let at = program.address(MIB);
        program.push(alloc(at, MIB).native("app", "work", "app.c", 20));
        program.push(free(at));
    }
    program.push(exit_handler());
    let row = program.row();
    assert!(row.leaks.is_empty(), "{:#?}", row.leaks);
    assert_eq!(row.not_leaks[0].live_bytes, 96 * MIB);
    assert!(matches!(
        row.not_leaks[0].kind,
        HarmlessKind::OneShot | HarmlessKind::WarmUp
    ));
}

#[test]
fn segments_of_torch_are_a_pool_and_workspaces_are_workspaces() {
    let mut program = Program::new();
    for _ in 0..20 {
        program.pause(50);
        let segment = program.address(32 * MIB);
        program.push(torch_segment(segment, 32 * MIB).at("train.py:9 step"));
        program.push(
            block(segment, 8 * MIB)
                .native(
                    "libtorch_cuda.so",
                    "at::cuda::getCurrentCUDABlasHandle()",
                    "",
                    0,
                )
                .at("train.py:9 step"),
        );
    }
    program.push(finalising());
    let row = program.row();
    assert!(row.leaks.is_empty(), "{:#?}", row.leaks);
    let of = |kind| row.not_leaks.iter().find(|row| row.kind == kind).unwrap();
    assert_eq!(of(HarmlessKind::Pool).live_bytes, 20 * 24 * MIB);
    assert_eq!(of(HarmlessKind::Workspace).live_bytes, 20 * 8 * MIB);
}

#[test]
fn a_librarys_own_memory_is_its_workspace_until_it_piles_up() {
    for (handles, leaks) in [(6, 0), (40, 1)] {
        let mut program = Program::new();
        for _ in 0..handles {
            program.pause(50);
            let at = program.address(8 * MIB);
            program.push(
                alloc(at, 8 * MIB)
                    .native("libcudart.so.12", "cudaMalloc", "", 0)
                    .native("/opt/lib/libcublas.so.12", "cublasCreate_v2", "", 0)
                    .native("app", "make_handle", "app.c", 10),
            );
        }
        program.push(exit_handler());
        let row = program.row();
        assert_eq!(row.leaks.len(), leaks, "{:#?}", row.leaks);
        let workspace = row
            .not_leaks
            .iter()
            .any(|row| row.kind == HarmlessKind::Workspace);
        assert_eq!(workspace, leaks == 0);
    }
}

#[test]
fn what_is_gone_before_the_end_of_main_does_not_count_as_live() {
    let mut program = Program::new();
    for _ in 0..20 {
        program.pause(50);
        program.block(MIB, "list.py:15 step");
    }
    program.push(finalising());
    program.free(0x7000_0000_0000);
    let row = program.row();
    assert_eq!(row.live_at_exit_bytes, Some(20 * MIB));
    assert_eq!(row.live_bytes, 19 * MIB);
    assert_eq!(row.leaks[0].live_bytes, 20 * MIB);
}

#[test]
fn the_json_has_the_keys_of_the_contract() {
    let mut program = Program::new();
    for _ in 0..20 {
        program.pause(50);
        program.block(MIB, "list.py:15 step");
    }
    let json = serde_json::to_value(program.report()).unwrap();
    assert_eq!(json["schema"], "gpumem.leaks/1");
    let keys = |value: &serde_json::Value| -> Vec<String> {
        value.as_object().unwrap().keys().cloned().collect()
    };
    let mut want = vec![
        "pid",
        "command",
        "host",
        "rank",
        "simulated",
        "device",
        "device_uuid",
        "clock",
        "live_bytes",
        "live_at_exit_bytes",
        "peak_bytes",
        "growth_bytes_per_step",
        "growth_explained",
        "full_in",
        "lost_events",
        "torch_totals",
        "leaks",
        "not_leaks",
    ];
    want.sort_unstable();
    let row = &json["processes"][0];
    let mut have = keys(row);
    have.sort_unstable();
    assert_eq!(have, want);
    assert!(row["live_at_exit_bytes"].is_null() && row["rank"].is_null());
    let mut want = vec![
        "kind",
        "layer",
        "clock",
        "bytes_per_step",
        "bytes_per_hour",
        "live_bytes",
        "max_live_bytes",
        "live_blocks",
        "confidence",
        "since",
        "still_growing",
        "site",
        "sites",
        "frames",
        "held_by",
        "why",
        "advice",
    ];
    want.sort_unstable();
    let mut have = keys(&row["leaks"][0]);
    have.sort_unstable();
    assert_eq!(have, want);
    assert_eq!(row["leaks"][0]["frames"][0]["language"], "python");
    assert_eq!(row["leaks"][0]["kind"], "growing");
}

/// So many cases, the same ones each time; others, and as many as one likes, with `PROPTEST_CASES` set.
fn cases(cases: u32) -> ProptestConfig {
    let chosen = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        return chosen;
    }
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(1),
        ..chosen
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn healthy_training_is_never_accused(seed in 0u64..1_000_000, steps in 8u64..120) {
        let (mut program, mut training) = (Program::new(), Training::new(seed));
        training.weights(&mut program);
        for number in 0..steps {
            training.step(&mut program, number);
        }
        program.push(finalising());
        let row = program.row();
        prop_assert!(row.leaks.is_empty(), "{:#?}", row.leaks);
    }

    #[test]
    fn healthy_serving_is_never_accused(seed in 0u64..1_000_000, requests in 3u64..30) {
        let mut program = Program::new();
        serve(&mut program, seed, requests, |_| {});
        program.push(finalising());
        let row = program.row();
        prop_assert!(row.leaks.is_empty(), "{:#?}", row.leaks);
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn a_leak_in_training_comes_out_as_it_is(
        seed in 0u64..1_000_000,
        steps in 16u64..80,
        units in 1u64..20_000,
    ) {
        let (mut program, mut training) = (Program::new(), Training::new(seed));
        let bytes = 512 * units;
        training.weights(&mut program);
        let steps = steps * training.accumulate;
        for number in 0..steps {
            training.step(&mut program, number);
            program.block(bytes, "train.py:31 train_step");
        }
        program.push(finalising());
        let row = program.row();
        prop_assert_eq!(row.leaks.len(), 1);
        let per_tick = if training.optimizer { bytes * training.accumulate } else { bytes };
        let leak = &row.leaks[0];
        prop_assert_eq!(line(leak), Some(31));
        prop_assert!(leak.bytes_per_step.abs_diff(per_tick) * 50 <= per_tick, "{:?}", leak);
        prop_assert_eq!(leak.live_bytes, bytes * steps);
    }

    #[test]
    fn a_leak_in_serving_comes_out_as_it_is(
        seed in 0u64..1_000_000,
        requests in 10u64..40,
        units in 1u64..20_000,
    ) {
        let mut program = Program::new();
        let bytes = 512 * units;
        serve(&mut program, seed, requests, |program| {
            program.block(bytes, "serve.py:31 remember");
        });
        program.push(finalising());
        let row = program.row();
        prop_assert_eq!(row.leaks.len(), 1);
        prop_assert_eq!(line(&row.leaks[0]), Some(31));
        prop_assert!(row.leaks[0].bytes_per_step.abs_diff(bytes) * 50 <= bytes);
    }
}
