//! Folders of libraries and programs.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The rows of the list of names: name, file.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("../../names.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            let row = (words.next().unwrap(), words.next().unwrap());
            let major = words.next().unwrap();
            assert!(["0", "12", "13"].contains(&major), "{line}");
            assert_eq!(words.next(), None, "{line}");
            row
        })
}

/// A folder that goes with the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// An empty one.
    pub(crate) fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("stubs-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Links from the names to the libraries that cargo has built.
    pub(crate) fn of_names(test: &str) -> Self {
        let folder = Self::new(&format!("names-{test}"));
        for (name, file) in names() {
            let built = std::env::current_exe().unwrap().with_file_name(file);
            assert!(built.is_file(), "{}", built.display());
            std::os::unix::fs::symlink(built, folder.0.join(name)).unwrap();
        }
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Compiles a C file of this folder.
pub(crate) fn compile(arguments: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stubs");
    let output = Command::new("cc")
        .current_dir(source)
        .args(arguments)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
