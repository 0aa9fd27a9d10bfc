//! Python interpreters of this machine, by version.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deps::needed;

/// The interpreter `python3.MINOR` itself, not a script that starts it: from PATH, else among pyenv's versions.
pub fn interpreter(minor: u32) -> Option<PathBuf> {
    let name = format!("python3.{minor}");
    let found = executable(Path::new(&name)).or_else(|| pyenv(&name));
    needed(
        found,
        &format!("no {name} in PATH nor among pyenv's versions"),
    )
}

/// Any interpreter: `python3`.
pub fn any() -> Option<PathBuf> {
    needed(executable(Path::new("python3")), "no python3 in PATH")
}

/// What an interpreter says that it is.
fn executable(program: &Path) -> Option<PathBuf> {
    let output = Command::new(program)
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    (output.status.success() && path.is_absolute()).then_some(path)
}

fn pyenv(name: &str) -> Option<PathBuf> {
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from).or_else(|| {
        let home = env::var_os("HOME")?;
        Some(Path::new(&home).join(".pyenv"))
    })?;
    std::fs::read_dir(root.join("versions"))
        .ok()?
        .filter_map(|entry| executable(&entry.ok()?.path().join("bin").join(name)))
        .next()
}
