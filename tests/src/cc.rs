//! The C and C++ programs and libraries beside the tests (`tests/c`), compiled when a test needs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deps::needed;

/// Whether there is a C++ compiler, which Rust does not need.
pub fn has_cxx() -> bool {
    let found = Command::new("c++").arg("--version").output().ok();
    needed(found, "no C++ compiler, c++, in PATH").is_some()
}

/// A C or C++ file beside the tests.
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
    let (compiler, standard) = if source_name.ends_with(".cc") {
        ("c++", "-std=gnu++17")
    } else {
        ("cc", "-std=gnu11")
    };
    let mut command = Command::new(compiler);
    command
        .args([standard, "-O1", "-g", "-Wall", "-Werror", "-pthread"])
        .args(kind)
        .arg("-o")
        .arg(to)
        .arg(source(source_name))
        .args(more)
        .arg("-ldl");
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{compiler}, a compiler, is not in PATH: {error}"));
    assert!(
        output.status.success(),
        "{source_name} could not be compiled:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    to.to_owned()
}
