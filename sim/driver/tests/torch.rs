//! Real, unmodified PyTorch reads numbers from the simulated device, and the
//! notes say which of its operators did.
//!
//! Needs what `tests/torch-env.sh` makes (`GPUMEM_TEST_TORCH`, else
//! `target/torch-env`), with the libraries that it has laid there. Without it the
//! test says so and does nothing, unless `GPUMEM_TEST_REQUIRE=1`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

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

#[test]
fn numbers_are_zero_and_their_readers_are_named() {
    let Some(environment) = environment() else {
        return;
    };
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let notes = tmp.join(format!("torch-notes-{}", std::process::id()));
    let mut command = Command::new(environment.join("venv/bin/python"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GPUMEM_SIM_") {
            command.env_remove(name);
        }
    }
    let output = command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/torch/read.py"))
        .env("LD_LIBRARY_PATH", environment.join("lib"))
        .env("GPUMEM_SIM_SMALL_D2H", "16")
        .env("GPUMEM_SIM_NOTES", &notes)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let wanted = json!({
        "nonzero": 0, "masked_select": 0, "mask": 0, "unique": 0, "item": 0.0,
        "all": true, "equal": true, "any": false, "bitwise": false, "repeated": 0, "sampled": 1000, "drawn": 3,
        "steps": 1, "with_state": 2,
    });
    assert_eq!(found, wanted);

    let text = std::fs::read_to_string(&notes).unwrap();
    std::fs::remove_file(&notes).unwrap();
    // Operators whose names hold a word: how often they read, and got zeros.
    let reads = |word: &str| {
        let mut sums = (0, 0);
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            if let ["small_copy", operator, count, zeroed] = fields[..]
                && operator.contains(word)
            {
                sums.0 += count.parse::<u64>().unwrap();
                sums.1 += zeroed.parse::<u64>().unwrap();
            }
        }
        sums
    };
    // `nonzero`, `masked_select` and the mask.
    assert_eq!(reads("::nonzero"), (3, 3), "{text}");
    assert!(reads("unique").0 > 0, "{text}");
    // The program's own: `item` of four things, the scaler's flag and the loss.
    assert_eq!(reads("_local_scalar_dense"), (6, 6), "{text}");
}
