//! Each allocation of a Python program carries the very stack that Python itself tells: files, lines, qualified names. On a
//! Python whose frames cannot be read, native frames are all there is, and the report says so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpumem_collector::model::Process;
use gpumem_tests::place::finish;
use gpumem_tests::{Place, python};
use gpumem_wire::define::PythonStatus;
use gpumem_wire::{Frame, Object, StackId};
use serde_json::Value;

/// File, line, qualified name.
type PythonFrame = (String, u32, String);

/// A script beside the tests.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("python")
        .join(name)
}

/// The Python frames of a recorded stack, innermost first.
fn python_frames(process: &Process, stack: StackId) -> Vec<PythonFrame> {
    let definitions = process.definitions();
    let stack = definitions.stack(stack).expect("the stack is defined");
    assert_eq!(stack.left_out, 0);
    stack
        .frames
        .iter()
        .filter_map(|frame| match *frame {
            Frame::Python { code, line } => {
                let code = definitions.code(code).expect("the code object is defined");
                Some((code.file.clone(), line, code.function.clone()))
            }
            _ => None,
        })
        .collect()
}

fn told(line: &Value) -> Vec<PythonFrame> {
    serde_json::from_value(line["frames"].clone()).expect("frames")
}

fn check(minor: u32, recorded: bool) {
    let Some(python) = python::interpreter(minor) else {
        return;
    };
    let place = Place::new();
    let mut command = if recorded {
        place.recorded(python)
    } else {
        place.preloaded(python)
    };
    let finished = finish(command.arg(script("stacks.py"))).well();
    let mut lines: Vec<Value> = finished
        .out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let pid = lines.pop().expect("a last line")["pid"].as_u64();
    let session = if recorded {
        place.recording()
    } else {
        place.spooled()
    };
    let process = session
        .process(pid.expect("a pid") as u32)
        .expect("its record");
    assert_eq!(
        process.python(),
        Some(PythonStatus::Supported {
            major: 3,
            minor: minor as u8
        })
    );
    let stacks: BTreeMap<u64, StackId> = process
        .live()
        .iter()
        .filter(|object| object.object == Object::DeviceAllocation)
        .map(|object| (object.value, object.stack))
        .collect();
    assert!(lines.len() >= 25, "{} allocations", lines.len());
    assert_eq!(stacks.len(), lines.len());
    for line in &lines {
        let address = line["address"].as_u64().expect("an address");
        assert_eq!(python_frames(process, stacks[&address]), told(line));
    }
    assert_eq!(process.lost().total(), 0);
}

#[test]
fn python_3_11() {
    check(11, false);
}

#[test]
fn python_3_12() {
    check(12, false);
}

#[test]
fn python_3_13() {
    check(13, false);
}

#[test]
fn python_3_12_under_gpumem_run() {
    check(12, true);
}

/// A Python whose frames are not read: its own record says so, the report says it once, and the memory is there.
fn check_unread(minor: u32) {
    let Some(python) = python::interpreter(minor) else {
        return;
    };
    let place = Place::new();
    let finished = finish(place.recorded(python).arg(script("one.py"))).well();
    let pid = finished.out.trim().parse().expect("a pid");
    let session = place.recording();
    let process = session.process(pid).expect("its record");
    assert_eq!(
        process.python(),
        Some(PythonStatus::Unsupported {
            major: 3,
            minor: minor as u8
        })
    );
    let live = process.live();
    let object = live
        .iter()
        .find(|object| object.object == Object::DeviceAllocation)
        .expect("the allocation");
    assert_eq!(object.bytes, 3 << 20);
    let stack = process.definitions().stack(object.stack).expect("a stack");
    let native = |frame: &Frame| matches!(frame, Frame::Native { .. });
    assert!(stack.frames.len() > 3 && stack.frames.iter().all(native));

    let report = finish(place.gpumem(&["leaks"]).arg(place.capture())).well();
    let version = format!("Python 3.{minor}");
    let lines = report.out.lines().filter(|line| line.contains(&version));
    assert_eq!(lines.count(), 1, "{}", report.out);
}

#[test]
fn python_3_10_has_native_frames_and_a_line_that_says_so() {
    check_unread(10);
}

#[test]
fn python_3_9_has_native_frames_and_a_line_that_says_so() {
    check_unread(9);
}
