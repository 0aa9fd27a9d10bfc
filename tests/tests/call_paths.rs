//! The demo's job under `gpumem run`, which reaches the driver by bound symbols, by `dlsym` and by `cuGetProcAddress`: the leak
//! is named exactly as the job itself knows it. And `run` stands aside: status, input, preloads and files are the program's.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use gpumem_tests::place::finish;
use gpumem_tests::{Place, artefacts, cc};
use serde_json::Value;

const STEPS: u64 = 40;

/// The demo's job, recorded; what it says of its leak.
fn demo(place: &Place) -> Value {
    let steps = STEPS.to_string();
    let mut command = place.recorded(artefacts::demo_job());
    let finished = finish(command.args(["--steps", &steps, "--pause", "0", "--truth"])).well();
    let truth = finished.out.lines().last().expect("a line of truth");
    serde_json::from_str(truth).expect("the job's truth is JSON")
}

fn leaks(place: &Place, more: &[&str]) -> gpumem_tests::Finished {
    let mut command = place.gpumem(&["leaks"]);
    finish(command.arg(place.capture()).args(more)).well()
}

#[test]
fn the_leak_is_named_as_the_job_knows_it() {
    let place = Place::new();
    let truth = demo(&place);
    let report = leaks(&place, &["--json"]).json();
    assert_eq!(report["schema"], "gpumem.leaks/1");
    let rows = report["processes"].as_array().expect("rows");
    let on_device: Vec<&Value> = rows.iter().filter(|row| row["device"] == 0).collect();
    let [row] = on_device[..] else {
        panic!("one row of the device: {report:#}");
    };
    assert_eq!(row["lost_events"], 0);
    let [leak] = &row["leaks"].as_array().expect("leaks")[..] else {
        panic!("one leak: {row:#}");
    };
    assert_eq!(leak["bytes_per_step"], truth["leak_bytes_per_step"]);
    // No optimizer and no backward pass: the program has no clock of its own.
    assert_eq!(leak["kind"], "unfreed");
    assert_eq!(leak["still_growing"], true);
    assert_eq!(leak["live_blocks"], STEPS);
    let held = truth["leak_bytes_per_step"].as_u64().expect("bytes") * STEPS;
    assert_eq!(leak["live_bytes"], held);
    assert_eq!(row["live_at_exit_bytes"], held);
    let site = &leak["site"];
    let file = truth["leak_file"].as_str().expect("a file");
    assert!(
        site["file"]
            .as_str()
            .is_some_and(|found| found.ends_with(file)),
        "{site}"
    );
    assert_eq!(site["line"], truth["leak_line"]);
    let function = truth["leak_function"].as_str().expect("a function");
    assert!(
        site["function"]
            .as_str()
            .is_some_and(|found| found.contains(function)),
        "{site}"
    );
}

#[test]
fn the_text_names_it_too() {
    let place = Place::new();
    let truth = demo(&place);
    let text = leaks(&place, &[]).out;
    let head = text.lines().find(|line| line.starts_with("LEAK"));
    let head = head.expect("a leak");
    let (function, line) = (&truth["leak_function"], &truth["leak_line"]);
    let named = format!("cache.rs:{line} {}", function.as_str().expect("a function"));
    assert!(
        head.contains("+4.00 MiB/use") && head.ends_with(&named),
        "{text}"
    );
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
}

#[test]
fn the_map_of_the_demo_is_the_drivers() {
    let place = Place::new();
    demo(&place);
    let session = place.recording();
    let [process] = &session.processes[..] else {
        panic!("one process");
    };
    let truth = place.truth(process.definition().pid);
    let pools: Vec<u64> = truth["live"]
        .as_array()
        .expect("live objects")
        .iter()
        .filter(|object| object["kind"] == "pool")
        .filter_map(|object| object["handle"].as_u64())
        .collect();
    gpumem_tests::ledger::assert_equal(
        &gpumem_tests::ledger::of_driver(&truth, &pools),
        &gpumem_tests::ledger::of_model(process),
    );
}

#[test]
fn the_status_is_the_programs_own() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 143),
        ("kill -KILL $$", 137),
    ] {
        let place = Place::new();
        let finished = finish(place.recorded("/bin/sh").args(["-c", script]));
        assert_eq!(finished.code(), code, "{script}: {}", finished.err);
    }
}

#[test]
fn input_and_an_own_preload_pass_through() {
    let place = Place::new();
    let tool = cc::library("names.c", &place.path("own.so"), &[]);
    let mut child = place
        .recorded("/bin/sh")
        .args(["-c", "cat; echo \"$LD_PRELOAD\""])
        .env("LD_PRELOAD", &tool)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("gpumem runs");
    let mut input = child.stdin.take().expect("its input");
    input.write_all(b"given\n").expect("it reads");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    let expected = format!(
        "given\n{}:{}\n",
        artefacts::shim().display(),
        tool.display()
    );
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn a_recording_is_never_overwritten() {
    let place = Place::new();
    std::fs::write(place.capture(), "mine").expect("a new file");
    let again =
        |command: &mut Command| finish(command.args(["--steps", "3", "--pause", "0"])).well();
    let first = again(&mut place.recorded(artefacts::demo_job()));
    let second = again(&mut place.recorded(artefacts::demo_job()));
    assert_eq!(
        std::fs::read(place.capture()).expect("still there"),
        b"mine"
    );
    for (finished, name) in [(first, "run.1.gpumem"), (second, "run.2.gpumem")] {
        assert!(finished.err.contains(name), "{}", finished.err);
        assert!(is_capture(&place.path(name)), "{name}");
    }
}

fn is_capture(path: &Path) -> bool {
    gpumem_collector::ingest::capture::CaptureReader::open(path).is_ok()
}
