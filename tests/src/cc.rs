//! The C programs and libraries beside the tests (`tests/c`), compiled when a test needs them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A C file beside the tests.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(name)
}

/// Compiles `source` to the program `to`; `more` are further arguments of the compiler, libraries last.
pub fn program(source_name: &str, to: &Path, more: &[&str]) -> PathBuf {
    compile(source_name, to, &["-rdynamic"], more)
}

/// Compiles `source` to the shared library `to`.
pub fn library(source_name: &str, to: &Path, more: &[&str]) -> PathBuf {
    compile(source_name, to, &["-shared", "-fPIC"], more)
}

fn compile(source_name: &str, to: &Path, kind: &[&str], more: &[&str]) -> PathBuf {
    let mut command = Command::new("cc");
    command
        .args(["-std=gnu11", "-O1", "-g", "-Wall", "-Werror", "-pthread"])
        .args(kind)
        .arg("-o")
        .arg(to)
        .arg(source(source_name))
        .args(more)
        .arg("-ldl");
    let output = command.output().expect("a C compiler, cc, is in PATH");
    assert!(
        output.status.success(),
        "{source_name} could not be compiled:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    to.to_owned()
}
