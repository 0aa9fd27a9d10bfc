//! The spool file: where the events go when no collector listens. It is a capture of one process.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use gpumem_wire::chunk::CAPTURE_MAGIC;
use gpumem_wire::define::ProcessDefinition;
use gpumem_wire::places;

use crate::config;
use crate::ship::socket::Guarded;

/// Bytes of one spool file, at most, unless `GPUMEM_SPOOL_LIMIT` says otherwise.
const LIMIT_BYTES: u64 = 2 << 30;

/// An open spool file.
pub(crate) struct Spool {
    file: Guarded,
    written_bytes: u64,
    limit_bytes: u64,
}

impl Spool {
    /// Creates a new file in the first place that is, or can be made, ours.
    pub(crate) fn create(process: &ProcessDefinition) -> io::Result<Self> {
        let rank = process.environment.iter().find(|(name, _)| name == "RANK");
        let rank = rank
            .map(|(_, rank)| format!("-r{rank}"))
            .unwrap_or_default();
        let boot = process.boot_id.get(..8).unwrap_or("boot");
        let (start, host) = (process.started_ns, clean(&process.host));
        let name = format!(
            "{start}-{host}-{boot}-{}-{}{}.gpumem",
            process.pid_namespace,
            process.pid,
            clean(&rank)
        );
        let mut last = io::Error::new(io::ErrorKind::NotFound, "no folder for spool files");
        for folder in places::spool_folders(|name| std::env::var(name).ok(), process.uid) {
            match own_folder(&folder, process.uid).and_then(|()| create(&folder.join(&name))) {
                Ok(file) => {
                    file.write_all(&CAPTURE_MAGIC)?;
                    let limit = config::variable(config::SPOOL_LIMIT);
                    let limit = limit.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
                    return Ok(Self {
                        file,
                        written_bytes: 8,
                        limit_bytes: limit.unwrap_or(LIMIT_BYTES),
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Whether so many more bytes fit under the limit.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.written_bytes.saturating_add(bytes as u64) <= self.limit_bytes
    }

    /// Appends.
    ///
    /// # Errors
    /// As [`Guarded::write_all`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.written_bytes += bytes.len() as u64;
        Ok(())
    }
}

/// A folder that only this user can have put files into. A link is not followed.
fn own_folder(folder: &Path, uid: u32) -> io::Result<()> {
    if !folder.is_absolute() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a relative path",
        ));
    }
    if !folder.exists() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
    }
    let found = fs::symlink_metadata(folder)?;
    if !found.is_dir() || found.uid() != uid || found.mode() & 0o022 != 0 {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "a folder that others can write to",
        ));
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<Guarded> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    // Tells readers that the file is still being written. On the open file, so it goes with the process, however that ends.
    // SAFETY: a system call on a descriptor that we own; it does not wait.
    unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    Guarded::new(file.into())
}

fn clean(name: &str) -> String {
    name.chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.'))
        .take(64)
        .collect()
}
