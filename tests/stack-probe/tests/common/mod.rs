//! Where the probe is, and how its drivers are run.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The probe as Cargo built it for this test.
pub(crate) fn probe() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let probe = test.with_file_name("libgpumem_stack_probe.so");
    assert!(
        probe.exists(),
        "{} is built by `cargo test`",
        probe.display()
    );
    probe
}

/// A file beside the tests.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Runs a driver to its end; gives what it printed. Panics with all of that if it failed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}
