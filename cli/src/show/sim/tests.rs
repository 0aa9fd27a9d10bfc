//! Goldens: a dry run at 80 columns.

use std::process::ExitCode;

use gpumem_collector::insight::fit::Tried;
use gpumem_collector::model::Session;
use gpumem_collector::model::testing::{
    GIB, MIB, Step, Trace, backward_begin, backward_end, block, block_free, event, optimizer_step,
    torch_segment,
};
use gpumem_wire::{Definition, Kind};

use super::*;
use crate::run::Outcome;
use crate::sim::Machine;
use crate::sim::notes::Notes;
use crate::sim::report::{NextRow, TriedRow};

const TORCH: &str = "/usr/lib/python3/site-packages/torch";
const DIRECTORY: &str = "/home/me/job";

fn call(step: Step, line: u32) -> Step {
    step.at(&format!("{TORCH}/nn/modules/activation.py:9 ReLU.forward"))
        .at(&format!("{TORCH}/nn/modules/module.py:2 Module._call_impl"))
        .at(&format!(
            "/usr/lib/python3/site-packages/torchvision/models/resnet.py:{line} Bottleneck.forward"
        ))
        .at(&format!("{TORCH}/nn/modules/module.py:2 Module._call_impl"))
        .at("/home/me/job/train.py:20 main")
}

fn backward(address: u64, bytes: u64) -> Step {
    let node = "torch::autograd::generated::ConvolutionBackward0::apply(std::vector<at::Tensor>&&)";
    block(address, bytes)
        .thread(2)
        .native("libtorch_cpu.so", node, "", 0)
}

/// Two training steps; `fails`: the second runs out of memory in its forward pass.
fn training(fails: bool) -> Trace {
    let mut trace = Trace::new();
    trace.define(Definition::Source {
        file: "/home/me/job/train.py".into(),
        line: 20,
        text: "        loss = criterion(model(images), labels)".into(),
    });
    trace.push(torch_segment(0x10_0000_0000, 3 * GIB));
    trace.push(
        block(0x1000, 98 * MIB)
            .at(&format!("{TORCH}/nn/modules/module.py:1 Module.to"))
            .at("/home/me/job/train.py:10 main"),
    );
    for step in 0..2 {
        trace.push(call(block(0x3000, 900 * MIB), 155).after_ms(700));
        trace.push(call(block(0x4000, 1200 * MIB), 146));
        if fails && step == 1 {
            let failed = event(Kind::BlockOom, [640 * MIB, 0, 0, 0]);
            trace.push(call(failed, 147));
            return trace;
        }
        trace.push(backward_begin());
        trace.push(backward(0x5000, 98 * MIB));
        // The gradient of the input: made by another line of the same operator, and gone in the pass.
        trace.push(backward(0x6000, 200 * MIB).native("libtorch_cpu.so", "input", "", 0));
        trace.push(block_free(0x6000));
        trace.push(block_free(0x3000));
        trace.push(block_free(0x4000));
        trace.push(backward_end());
        trace.push(optimizer_step());
        trace.push(block_free(0x5000));
    }
    trace
}

fn report(trace: &Trace, machine: &str, code: i32) -> SimReport {
    let mut session = Session::default();
    session.processes.push(trace.process());
    let machine: Machine = machine.parse().expect("a machine");
    let outcome = Outcome {
        status: ExitCode::SUCCESS,
        code: Some(code),
        timed_out: false,
        failed: code != 0,
        session,
        capture: None,
    };
    let command = ["python", "train.py", "--batch", "64"].map(Into::into);
    SimReport::of(&machine, &command, &outcome, &Notes::default())
}

fn shown(report: &SimReport) -> String {
    let text = sim(report, 10, Style::PLAIN, DIRECTORY);
    for line in text.lines() {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(line.is_ascii(), "{line}");
    }
    text
}

#[test]
fn it_fits() {
    insta::assert_snapshot!(shown(&report(&training(false), "rtx-4090", 0)));
}

#[test]
fn it_does_not_fit() {
    let report = report(&training(true), "rtx-4090,memory=3500MiB", 1);
    assert_eq!(report.verdict, Verdict::DoesNotFit);
    insta::assert_snapshot!(shown(&report));
}

#[test]
fn it_cannot_be_told() {
    let failed = report(&training(false), "t4", 3);
    assert_eq!(failed.verdict, Verdict::Inconclusive);
    let nothing = report(&Trace::new(), "t4", 0);
    assert_eq!(nothing.verdict, Verdict::Inconclusive);
    insta::assert_snapshot!(shown(&nothing));
}

#[test]
fn the_largest_that_fits() {
    let mut report = report(&training(false), "rtx-4090,memory=3500MiB", 0);
    let tried = |value, fits, peak_bytes: u64| TriedRow {
        value,
        tried: Tried {
            fits,
            peak_bytes,
            peak_reserved_bytes: peak_bytes + 100 * MIB,
        },
    };
    report.search = Some(SearchRow {
        name: Some("batch".into()),
        low: 1,
        high: Some(1024),
        largest: Some(64),
        next: Some(NextRow {
            value: 65,
            peak_bytes: Some(3200 * MIB),
            peak_reserved_bytes: Some(3300 * MIB),
            need_bytes: Some(3600 * MIB),
            beyond_bytes: Some(100 * MIB),
        }),
        tried: vec![
            tried(1, true, 400 * MIB),
            tried(64, true, 2400 * MIB),
            tried(65, false, 2300 * MIB),
            tried(128, false, 2000 * MIB),
        ],
    });
    insta::assert_snapshot!(shown(&report));
}

#[test]
fn what_data_decide_puts_a_mark_on_the_answer() {
    let mut report = report(&training(false), "rtx-4090", 0);
    assert!(shown(&report).starts_with("\nFITS  "));
    report.certain = false;
    let text = shown(&report);
    assert!(text.starts_with("\nFITS?  "), "{text}");
    assert!(text.contains("it needs more.\n"), "{text}");
}

#[test]
fn a_search_that_ended_early_shows_what_it_found() {
    let mut report = report(&training(false), "t4", 130);
    assert_eq!(report.verdict, Verdict::Inconclusive);
    let tried = Tried {
        fits: true,
        peak_bytes: 400 * MIB,
        peak_reserved_bytes: 500 * MIB,
    };
    report.search = Some(SearchRow {
        name: Some("batch".into()),
        low: 1,
        high: None,
        largest: Some(8),
        next: None,
        tried: vec![TriedRow { value: 8, tried }],
    });
    insta::assert_snapshot!(shown(&report));
}

#[test]
fn the_keys_of_the_report() {
    let json = serde_json::to_value(report(&training(true), "t4", 1)).expect("JSON");
    let keys = |value: &serde_json::Value| -> Vec<String> {
        let object = value.as_object().expect("an object");
        object.keys().cloned().collect()
    };
    let all = format!(
        "{:?}\n{:?}\n{:?}\n{:?}\n{:?}\n",
        keys(&json),
        keys(&json["machine"]),
        keys(&json["processes"][0]),
        keys(&json["processes"][0]["by_site"][0]),
        keys(&json["processes"][0]["out_of_memory"]),
    );
    insta::assert_snapshot!(all);
}
