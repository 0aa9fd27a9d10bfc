//! Goldens: what a person reads, at 80 columns.

use gpumem_collector::insight::leaks::leaks as find;
use gpumem_collector::insight::ps::ps as list;
use gpumem_collector::model::testing::{
    EPOCH_NS, KIB, MIB, Step, Trace, alloc, block, block_free, exit_handler, finalising, gap,
    optimizer_step, physical, torch_segment,
};
use gpumem_collector::model::{Session, State};

use gpumem_wire::Definition;

use super::WIDTH;
use super::colour::Style;
use super::leaks::Shown;

const SHOWN: Shown = Shown {
    top: 10,
    all_frames: false,
};

fn session(trace: &Trace) -> Session {
    let mut session = Session::default();
    session.processes.push(trace.process());
    session
}

fn report(trace: &Trace) -> String {
    let now_ns = EPOCH_NS + 3_700_000_000_000;
    let text = crate::verb::leaks::text(&session(trace), SHOWN, Style::PLAIN, now_ns);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(line.is_ascii(), "{line}");
    }
    text
}

/// Forty optimizer steps that keep 4 MiB each at train.py:31.
fn training(leak: bool) -> Trace {
    let mut trace = Trace::new();
    trace.push(torch_segment(0x10_0000_0000, 512 * MIB));
    let mut at = 0x20_0000_0000;
    let mut next = |bytes: u64| {
        at += bytes;
        at
    };
    for _ in 0..8 {
        let weight = next(8 * MIB);
        trace.push(block(weight, 8 * MIB).at("/home/me/job/model.py:12 Layer.__init__"));
    }
    for _ in 0..40 {
        let here = |step: Step| step.at("/home/me/job/train.py:90 main");
        let kept = next(4 * MIB);
        let loss = next(512);
        if leak {
            let step = block(kept, 4 * MIB).native("libtorch_cuda.so", "at::native::fill", "", 0);
            trace.push(here(step.at("/home/me/job/train.py:31 train_step")).after_ms(50));
            trace.push(here(
                block(loss, 512).at("/home/me/job/train.py:34 train_step"),
            ));
        }
        let activation = next(16 * MIB);
        trace.push(here(
            block(activation, 16 * MIB).at("/home/me/job/train.py:33 train_step"),
        ));
        trace.push(block_free(activation));
        trace.push(optimizer_step());
    }
    trace.push(finalising());
    trace
}

#[test]
fn a_leak_in_training() {
    insta::assert_snapshot!(report(&training(true)));
}

#[test]
fn no_leak_in_training() {
    insta::assert_snapshot!(report(&training(false)));
}

#[test]
fn driver_memory_that_is_never_freed() {
    let mut trace = Trace::new();
    for step in 0..20 {
        let lost = physical(step + 1, 8 * MIB)
            .native("app", "demo::vmm::use_buffer_once", "/src/app.c", 26)
            .native("app", "main", "/src/app.c", 52);
        trace.push(lost.after_ms(50));
        let address = 0x10_0000_0000 + step * MIB;
        let lost = alloc(address, 256 * KIB).native("app", "load_tile", "/src/app.c", 11);
        trace.push(lost.after_ms(1));
    }
    trace.push(exit_handler());
    insta::assert_snapshot!(report(&trace));
}

#[test]
fn what_stands_against_the_figures_is_said() {
    let mut trace = Trace::new();
    trace.push(block(0x1000, MIB).at("train\x1b[2J.py:1 f"));
    trace.push(gap(12, 3));
    insta::assert_snapshot!(report(&trace));
}

#[test]
fn the_table_of_processes() {
    let mut both = session(&training(true));
    let mut other = Trace::new();
    other.push(alloc(0x1000, 3 * MIB));
    both.processes.push(other.process());
    insta::assert_snapshot!(super::ps::ps(&list(&both)));
}

#[test]
fn ranks_that_say_the_same_are_shown_once_and_deviants_apart() {
    let mut job = Session::default();
    for rank in 0..4 {
        let mut trace = training(rank != 2);
        let Definition::Process(mut process) = trace.definitions()[0].clone() else {
            panic!("the first definition is the process");
        };
        process.pid += rank;
        process.environment = vec![("RANK".into(), rank.to_string())];
        trace.define(Definition::Process(process));
        job.processes.push(trace.process());
    }
    let text = crate::verb::leaks::text(&job, SHOWN, Style::PLAIN, EPOCH_NS);
    assert_eq!(
        text.matches("train.py:31 train_step\n      growing")
            .count(),
        1
    );
    assert!(text.contains("ranks 0,1,3 alike: live 224 MiB, peak 240 MiB; rank 0:\n"));
    assert_eq!(text.matches("rank 2  device 0").count(), 1);
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
    assert!(text.starts_with("python train.py  host, ranks 0..3, began"));
}

#[test]
fn the_summary_of_a_run() {
    let session = session(&training(true));
    let path = std::path::Path::new("/home/me/.local/state/gpumem/gpumem.node7.4711.gpumem");
    let text = super::summary::summary(&session, &find(&session), Some(path), Style::PLAIN);
    assert!(text.lines().count() <= 10);
    insta::assert_snapshot!(text);
}

/// Four processes of a node, each on two of eight devices, with much in them; one cannot be seen from here.
fn node() -> Session {
    let mut session = Session::default();
    for number in 0..4u32 {
        let mut trace = Trace::new();
        for step in 0..40u64 {
            for device in [2 * number as i16, 2 * number as i16 + 1] {
                let at = 0x10_0000_0000 * (u64::from(number) + 1) + step * (1 << 30);
                let place = "/home/me/job/with/a/rather/long/path/to/the/package/loader.py:1234 Loader.prefetch_to_device";
                let kept = alloc(at + device as u64 * 8 * MIB, 3 * MIB).device(device);
                trace.push(kept.at(place).after_ms(500));
            }
        }
        if number != 2 {
            trace.push(exit_handler());
        }
        let Definition::Process(mut process) = trace.definitions()[0].clone() else {
            panic!("the first definition is the process");
        };
        process.pid = 4_000_000 + number;
        process.host = "node-with-a-long-name-0017.cluster.example.org".into();
        process.command = [
            "python",
            "-m",
            "serve",
            "--config",
            "configs/production/large.yaml",
        ]
        .map(String::from)
        .to_vec();
        process.directory = "/home/me/job".into();
        trace.define(Definition::Process(process));
        let mut process = trace.process();
        process.set_state(
            [State::Running, State::Killed, State::Unknown, State::Ended][number as usize],
        );
        session.processes.push(process);
    }
    session
}

#[test]
fn many_processes_and_devices_stay_within_the_width() {
    let session = node();
    let now_ns = EPOCH_NS + 3_700_000_000_000;
    let path = std::path::Path::new(
        "/home/me/.local/state/gpumem/1796083575065190798-node-with-a-long-name-0017-73f5e879-4026531836-23036.gpumem",
    );
    let leaks = crate::verb::leaks::text(&session, SHOWN, Style::PLAIN, now_ns);
    let ps = super::ps::ps(&list(&session));
    let summary = super::summary::summary(&session, &find(&session), Some(path), Style::PLAIN);
    for line in leaks.lines().chain(ps.lines()).chain(summary.lines()) {
        // A path is to be copied: it is never cut.
        let fits = line.chars().count() <= WIDTH || line.contains("/.local/state/");
        assert!(fits && line.is_ascii(), "{line}");
    }
    assert!(summary.lines().count() <= 10);
    insta::assert_snapshot!(format!("{leaks}{ps}{summary}"));
}
