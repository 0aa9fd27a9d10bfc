//! Files that this library writes for others to read: whole or not at all.

use std::io;
use std::path::{Path, PathBuf};

/// The path that a setting means for this process: `%p` is the process id.
pub(crate) fn of_process(pattern: &str) -> PathBuf {
    pattern
        .replace("%p", &std::process::id().to_string())
        .into()
}

/// Puts a file in the place of the one that may be there, in one step.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    std::fs::write(&beside, contents)?;
    std::fs::rename(&beside, path)
}
