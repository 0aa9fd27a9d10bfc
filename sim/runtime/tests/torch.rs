//! Real, unmodified PyTorch on the simulated device: its own counters against
//! the driver's ledger.
//!
//! Needs what `tests/torch-env.sh` makes (`GPUMEM_TEST_TORCH`, else
//! `target/torch-env`). Without it the test says so and does nothing, unless
//! `GPUMEM_TEST_REQUIRE=1`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The environment, or `None` after saying that there is none.
fn environment() -> Option<PathBuf> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let folder = std::env::var_os("GPUMEM_TEST_TORCH")
        .map_or_else(|| target.join("torch-env"), PathBuf::from);
    if folder.join("lib/libcuda.so.1").is_file() {
        return Some(folder);
    }
    let required = std::env::var_os("GPUMEM_TEST_REQUIRE").is_some_and(|value| value == "1");
    assert!(!required, "no PyTorch: run tests/torch-env.sh");
    // Past the harness, which keeps what a passing test says to itself.
    let _ = writeln!(
        std::io::stderr(),
        "skipped: no PyTorch: run tests/torch-env.sh"
    );
    None
}

/// What PyTorch said at the end of a program, and the driver's truth.
fn train(environment: &Path, program: &str, allocator: &str) -> (Value, Value) {
    let truth = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
        "torch-truth-{}-{program}-{}",
        std::process::id(),
        allocator.len()
    ));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torch");
    let mut command = Command::new(environment.join("venv/bin/python"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPUMEM_SIM_") {
            command.env_remove(name);
        }
    }
    let output = command
        .arg(folder.join(program))
        .env("LD_LIBRARY_PATH", environment.join("lib"))
        .env("PYTORCH_ALLOC_CONF", allocator)
        .env("GPUMEM_SIM_TRUTH", &truth)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let said = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let truth_text = std::fs::read_to_string(&truth).unwrap();
    std::fs::remove_file(&truth).unwrap();
    (said, serde_json::from_str(&truth_text).unwrap())
}

fn check(said: &Value, truth: &Value) {
    assert!(said["device"].as_str().unwrap().contains("simulated"));
    let allocated = said["allocated"].as_array().unwrap();
    assert_eq!(allocated.first(), allocated.last(), "no step adds anything");
    assert_eq!(said["copied"], true);
    assert_eq!(said["reused_while_busy"], false);
    assert_eq!(said["reused_after"], true);
    assert_eq!(said["refused"], true);
    // Three counts of the same bytes, of which one is not PyTorch's.
    assert_eq!(said["segments"], said["reserved"]);
    assert_eq!(truth["devices"][0]["charged_bytes"], said["reserved"]);
}

#[test]
fn its_counters_are_the_drivers() {
    let Some(environment) = environment() else {
        return;
    };
    let (said, truth) = train(&environment, "train.py", "expandable_segments:False");
    check(&said, &truth);
    assert!(truth["calls"]["cuMemAlloc_v2"].as_u64().unwrap() > 0);
    assert_eq!(truth["calls"].get("cuMemCreate"), None);
}

#[test]
fn its_expandable_segments_are_the_drivers() {
    let Some(environment) = environment() else {
        return;
    };
    let (said, truth) = train(&environment, "train.py", "expandable_segments:True");
    check(&said, &truth);
    assert!(truth["calls"]["cuMemCreate"].as_u64().unwrap() > 0);
}

#[test]
fn networks_of_each_kind_are_trained() {
    let Some(environment) = environment() else {
        return;
    };
    let (said, truth) = train(&environment, "matrix.py", "expandable_segments:False");
    assert_eq!(said["segments"], said["reserved"]);
    assert_eq!(truth["devices"][0]["charged_bytes"], said["reserved"]);
}
