//! `gpumem run --sim` and `gpumem sim`: real programs on a simulated machine, without a GPU and without anything of NVIDIA's.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpumem_tests::place::finish;
use gpumem_tests::{Finished, Place, artefacts, deps, python};
use serde_json::Value;

/// A block of `blocks.py`.
const BLOCK_BYTES: u64 = 16 << 20;

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("python")
        .join(name)
}

/// `gpumem` where no other driver is found than the one it brings itself.
fn gpumem(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.gpumem(arguments);
    command.env_remove("LD_LIBRARY_PATH");
    command
}

#[track_caller]
fn sim(place: &Place, options: &[&str], command: &[&str]) -> Finished {
    let mut arguments = vec!["sim", "--json"];
    arguments.extend(options);
    arguments.push("--");
    arguments.extend(command);
    finish(&mut gpumem(place, &arguments))
}

fn number(report: &Value, pointer: &str) -> u64 {
    report
        .pointer(pointer)
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no {pointer} in {report:#}"))
}

#[test]
fn a_program_runs_on_the_machine_that_is_named() {
    let place = Place::without_driver();
    let job = artefacts::demo_job();
    let mut command = gpumem(&place, &["run", "--sim=rtx3090,memory=2GiB", "-o"]);
    let finished = finish(command.arg(place.capture()).arg("--").arg(job)).well();
    assert!(
        finished
            .err
            .contains("on a simulated NVIDIA GeForce RTX 3090 with 2.00 GiB"),
        "{}",
        finished.err
    );
    assert!(finished.err.contains("LEAK  +4.00 MiB"), "{}", finished.err);
    let session = place.recording();
    let devices: Vec<(String, u64)> = session.processes[0]
        .definitions()
        .devices()
        .map(|device| (device.name.clone(), device.total_bytes))
        .collect();
    assert_eq!(devices, [("NVIDIA GeForce RTX 3090".into(), 2 << 30)]);
}

#[test]
fn several_devices_are_several() {
    let Some(python) = python::any() else { return };
    let place = Place::without_driver();
    let count = "import ctypes; d = ctypes.CDLL('libcuda.so.1'); n = ctypes.c_int(); d.cuInit(0); \
                 d.cuDeviceGetCount(ctypes.byref(n)); print(n.value)";
    let mut command = gpumem(&place, &["run", "--sim=t4,count=3", "--"]);
    let finished = finish(command.arg(python).args(["-c", count])).well();
    assert_eq!(finished.out, "3\n");
}

#[test]
fn children_share_the_memory_of_the_machine() {
    let Some(python) = python::any() else { return };
    let place = Place::without_driver();
    let (python, blocks) = (python.display().to_string(), script("blocks.py"));
    let blocks = blocks.display().to_string();
    // Each alone has room for 80 blocks and its context; the two together have not.
    let alone = [python.as_str(), &blocks, "80"];
    let both = [python.as_str(), &blocks, "80", &python, &blocks, "80"];
    let options = ["--device", "t4", "--memory", "2GiB"];
    let fits = sim(&place, &options, &alone);
    assert_eq!(fits.code(), 0, "{}", fits.err);
    let fails = sim(&place, &options, &both);
    assert_eq!(fails.code(), 1, "{}", fails.err);
    let report = fails.json();
    assert_eq!(report["verdict"], "does-not-fit");
    assert_eq!(number(&report, "/exit_status"), 2);
    let processes = report["processes"].as_array().expect("rows");
    assert_eq!(processes.len(), 2);
    let held: u64 = processes
        .iter()
        .map(|row| number(row, "/peak_bytes"))
        .sum::<u64>()
        + 2 * number(&report, "/machine/context_bytes");
    // What is left is less than the block that was asked for, and both saw the same device.
    assert!(held <= 2 << 30 && held + BLOCK_BYTES > 2 << 30, "{held}");
    let failed = processes
        .iter()
        .find(|row| !row["out_of_memory"].is_null())
        .expect("the child ran out of memory");
    assert_eq!(
        number(failed, "/out_of_memory/requested_bytes"),
        BLOCK_BYTES
    );
}

#[test]
fn the_exit_status_says_whether_it_fits() {
    let place = Place::without_driver();
    let job = artefacts::demo_job().display().to_string();
    for (options, command, code, said) in [
        (vec![], vec![job.as_str()], 0, ""),
        (
            vec!["--memory", "400MiB"],
            vec!["sh", "-c", "exit 3"],
            4,
            "status 3",
        ),
        (vec![], vec!["true"], 4, "took no memory of a device"),
        (
            vec!["--timeout", "1"],
            vec!["tail", "-f", "/dev/null"],
            4,
            "did not end in time",
        ),
    ] {
        let mut arguments = vec!["--device", "t4"];
        arguments.extend(options);
        let finished = sim(&place, &arguments, &command);
        assert_eq!(finished.code(), code, "{command:?}: {}", finished.err);
        let report = finished.json();
        assert_eq!(report["schema"], "gpumem.sim/1");
        assert_eq!(report["simulated"], true);
        let why = report["why"].as_str().unwrap_or("");
        assert!(why.contains(said), "{why}");
    }
    let missing = sim(&place, &[], &["no-such-program-here"]);
    assert_eq!(missing.code(), 127);
    assert!(missing.err.contains("no-such-program-here was not found"));
}

#[test]
fn the_largest_value_is_found_to_the_block() {
    let Some(python) = python::any() else { return };
    let place = Place::without_driver();
    let (python, blocks) = (python.display().to_string(), script("blocks.py"));
    let command = [&*python, &*blocks.display().to_string(), "{blocks}"];
    let options = [
        "--device",
        "t4",
        "--memory",
        "1GiB",
        "--vary",
        "blocks=1..1000",
    ];
    let finished = sim(&place, &options, &command).well();
    let report = finished.json();
    let context = number(&report, "/machine/context_bytes");
    let largest = ((1 << 30) - context) / BLOCK_BYTES;
    assert_eq!(number(&report, "/search/largest"), largest);
    assert_eq!(
        number(&report, "/processes/0/peak_bytes"),
        largest * BLOCK_BYTES
    );
    let need = (largest + 1) * BLOCK_BYTES + context;
    assert_eq!(number(&report, "/search/next/value"), largest + 1);
    assert_eq!(number(&report, "/search/next/need_bytes"), need);
    assert_eq!(
        number(&report, "/search/next/beyond_bytes"),
        need - (1 << 30)
    );
    let tried = report["search"]["tried"].as_array().expect("a table");
    assert!(tried.len() <= 12, "{tried:?}");
    for row in tried {
        assert_eq!(row["fits"], number(row, "/value") <= largest, "{row}");
    }
    let range = ["--device", "t4", "--memory", "1GiB", "--vary", "1000.."];
    let none = sim(&place, &range, &[command[0], command[1], "{}"]);
    assert_eq!(none.code(), 1, "{}", none.err);
    assert!(none.json()["search"]["largest"].is_null());
}

#[test]
fn a_search_stops_where_the_program_fails_otherwise_and_shows_its_last_lines() {
    let place = Place::without_driver();
    let program = "echo to the screen; echo broken at {n} >&2; exit 3";
    let finished = sim(&place, &["--vary", "n=4..8"], &["sh", "-c", program]);
    assert_eq!(finished.code(), 4);
    let report = finished.json();
    assert_eq!(report["verdict"], "inconclusive");
    assert_eq!(report["search"]["tried"], serde_json::json!([]));
    for line in [
        "  to the screen\n",
        "  broken at 4\n",
        "the search ends at n 4: it ended with status 3",
    ] {
        assert!(finished.err.contains(line), "{}", finished.err);
    }
}

/// PyTorch's own files beside nothing of NVIDIA's: those of `torch-env.sh`, linked, without the folder in which the
/// simulated libraries lie there.
fn bare_torch(place: &Place) -> Option<(PathBuf, PathBuf)> {
    let python = deps::torch()?.python();
    let ask = |what: &str| {
        let output = Command::new(&python).args(["-c", what]).output();
        let output = output.expect("an interpreter").stdout;
        PathBuf::from(String::from_utf8_lossy(&output).trim_end())
    };
    let packages = ask("import sysconfig; print(sysconfig.get_path('purelib'))");
    let base = ask("import sys; print(sys._base_executable)");
    let bare = place.path("site-packages");
    // On another file system they are copied.
    for how in ["-al", "-a"] {
        let copied = finish(Command::new("cp").arg(how).arg(&packages).arg(&bare));
        if copied.status.success() {
            break;
        }
        let _ = std::fs::remove_dir_all(&bare);
    }
    let nvidia = bare.join("nvidia");
    if nvidia.exists() {
        std::fs::remove_dir_all(&nvidia).expect("links of our own");
    }
    assert!(bare.join("torch/lib/libtorch_cuda.so").is_file());
    Some((base, bare))
}

#[test]
fn an_unmodified_torch_trains_and_its_counters_agree() {
    let place = Place::without_driver();
    let Some((python, packages)) = bare_torch(&place) else {
        return;
    };
    let train = script("sim_train.py").display().to_string();
    let mut command = gpumem(&place, &["run", "--sim=rtx3090,memory=2GiB", "--"]);
    command.arg(&python).args([&train, "1"]);
    let finished = finish(command.env("PYTHONPATH", &packages)).well();
    let said: Value = finished.json();
    assert_eq!(said["device"], "NVIDIA GeForce RTX 3090");
    assert_eq!(number(&said, "/total"), 2 << 30);
    assert_eq!(said["nvidia"], Value::Array(Vec::new()));

    let mut command = gpumem(&place, &["sim", "--json", "rtx3090,memory=2GiB", "--"]);
    command.arg(&python).args([&train, "1"]);
    let finished = finish(command.env("PYTHONPATH", &packages)).well();
    let report = finished.json();
    let row = |key: &str| number(&report, &format!("/processes/0/{key}"));
    assert_eq!(row("peak_bytes"), number(&said, "/allocated"));
    assert_eq!(row("peak_reserved_bytes"), number(&said, "/reserved"));
    assert_eq!((row("backward_passes"), row("optimizer_steps")), (3, 3));
    let categories = report["processes"][0]["by_category"]
        .as_array()
        .expect("rows");
    let bytes = |name: &str| -> u64 {
        categories
            .iter()
            .filter(|row| row["category"] == name)
            .map(|row| number(row, "/bytes"))
            .sum()
    };
    // Two layers of 1024 x 4096 and their biases, in 4 bytes each; AdamW keeps two of each and a step count.
    let weights = 4 * (2 * 1024 * 4096 + 4096 + 1024);
    assert_eq!(bytes("parameter"), weights);
    assert_eq!(bytes("optimizer-state"), 2 * weights);
    let all: u64 = categories.iter().map(|row| number(row, "/bytes")).sum();
    assert_eq!(all, row("peak_bytes"));
}

#[test]
fn the_largest_batch_of_an_unmodified_torch_is_found() {
    let place = Place::without_driver();
    let Some((python, packages)) = bare_torch(&place) else {
        return;
    };
    let train = script("sim_train.py").display().to_string();
    let mut command = gpumem(
        &place,
        &[
            "sim",
            "--json",
            "t4,memory=1GiB",
            "--vary",
            "batch=1..",
            "--",
        ],
    );
    command.arg(&python).args([&train, "{batch}"]);
    let finished = finish(command.env("PYTHONPATH", &packages)).well();
    let report = finished.json();
    let largest = number(&report, "/search/largest");
    assert_eq!(number(&report, "/search/next/value"), largest + 1);
    let context = number(&report, "/machine/context_bytes");
    assert!((32..96).contains(&largest), "{largest}");
    let room = (1u64 << 30) - context;
    assert!(number(&report, "/processes/0/peak_reserved_bytes") <= room);
}
