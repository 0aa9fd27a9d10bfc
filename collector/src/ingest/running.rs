//! The collector that runs: who holds a socket, and which captures it writes now.
//!
//! Beside its socket a collector that lives on has two files. `NAME.lock` is locked as long as it lives and says its process
//! id: of two that start at once one takes the socket, and one that was killed leaves nothing behind that is in the way.
//! `NAME.now` lists the captures of the processes that speak, for whoever wants to read what is so far.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use gpumem_wire::places;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::net::sockopt::socket_peercred;

use crate::error::CollectorError;

/// Bytes that a socket's path may have, with the zero at its end (`sun_path` in `sys/un.h`).
const SOCKET_PATH: usize = 108;

/// Between the paths of a list: no path has one.
const SEPARATOR: u8 = 0;

/// The places of a collector's socket, the preferred first: where the shim looks.
pub fn socket_places() -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    places::sockets(|name| std::env::var(name).ok(), user)
}

/// The right to a socket, as long as this value lives.
#[derive(Debug)]
pub struct Claim {
    /// Locked. Never removed: who opened it before that would hold a lock that nobody sees.
    _lock: File,
}

impl Claim {
    /// Takes the right to a socket, and removes the socket of a collector that is no more.
    ///
    /// # Errors
    /// [`CollectorError::SocketPath`], [`CollectorError::UnsafeFolder`]; [`CollectorError::Held`] where a collector listens;
    /// [`CollectorError::Exists`] where something else lies at the path; [`CollectorError::Io`].
    pub fn take(socket: &Path) -> Result<Self, CollectorError> {
        if socket.as_os_str().len() >= SOCKET_PATH {
            return Err(CollectorError::SocketPath {
                path: socket.into(),
                most: SOCKET_PATH - 1,
            });
        }
        check_folder(folder_of(socket))?;
        let path = beside(socket, "lock");
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits() as i32)
            .open(&path)
            .map_err(CollectorError::io(&path))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::AGAIN) {
            let mut holder = String::new();
            let read = lock.read_to_string(&mut holder);
            let pid = read.ok().and_then(|_| holder.trim().parse().ok());
            return Err(CollectorError::Held {
                path: socket.into(),
                pid,
            });
        }
        remove_stale(socket)?;
        let write = |lock: &mut File| -> io::Result<()> {
            lock.set_len(0)?;
            writeln!(lock, "{}", std::process::id())
        };
        write(&mut lock).map_err(CollectorError::io(&path))?;
        Ok(Self { _lock: lock })
    }
}

/// Removes a socket where nobody listens. Its lock is ours, so that it is no collector's any more.
fn remove_stale(socket: &Path) -> Result<(), CollectorError> {
    let found = match fs::symlink_metadata(socket) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CollectorError::io(socket)(error)),
    };
    if !found.file_type().is_socket() {
        return Err(CollectorError::Exists {
            path: socket.into(),
        });
    }
    match UnixStream::connect(socket) {
        // One that takes no lock: that of a program under `gpumem run`, or somebody else's.
        Ok(stream) => Err(CollectorError::Held {
            path: socket.into(),
            pid: socket_peercred(&stream)
                .ok()
                .and_then(|peer| u32::try_from(peer.pid.as_raw_nonzero().get()).ok()),
        }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(socket).map_err(CollectorError::io(socket))
        }
        Err(error) => Err(CollectorError::io(socket)(error)),
    }
}

/// Makes a socket's folder or checks the one that is there: a real one, ours, and closed to others.
pub(super) fn check_folder(folder: &Path) -> Result<(), CollectorError> {
    let unsafe_folder = |why| CollectorError::UnsafeFolder {
        path: folder.into(),
        why,
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(CollectorError::io(folder)(error)),
    }
    let metadata = fs::symlink_metadata(folder).map_err(CollectorError::io(folder))?;
    if !metadata.is_dir() {
        return Err(unsafe_folder("it is a link or no folder"));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(unsafe_folder("it belongs to another user"));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(unsafe_folder("other users may enter it"));
    }
    Ok(())
}

/// The folder of a socket.
pub(super) fn folder_of(socket: &Path) -> &Path {
    socket
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// `collector.sock.lock` of `collector.sock`.
fn beside(socket: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(socket);
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// The list of captures that are written now, kept true by their collector.
#[derive(Debug)]
pub(super) struct Roster {
    path: PathBuf,
    /// The capture that was written last; it stays in the list when no process speaks.
    last: Option<PathBuf>,
    open: Vec<PathBuf>,
}

impl Roster {
    /// An empty list beside a socket.
    pub(super) fn new(socket: &Path) -> Self {
        let roster = Self {
            path: beside(socket, "now"),
            last: None,
            open: Vec::new(),
        };
        roster.write();
        roster
    }

    /// A capture is written from now on.
    pub(super) fn add(&mut self, path: PathBuf) {
        self.last = Some(path.clone());
        self.open.push(path);
        self.open.sort();
        self.open.dedup();
        self.write();
    }

    /// These captures are written now.
    pub(super) fn set(&mut self, mut open: Vec<PathBuf>) {
        open.sort();
        open.dedup();
        self.open = open;
        self.write();
    }

    /// The collector ends.
    pub(super) fn end(&self) {
        // It is believed only while the collector listens: one that stays does no harm.
        drop(fs::remove_file(&self.path));
    }

    /// Replaces the file as a whole: a reader never sees half of it. The first path is the last capture.
    fn write(&self) {
        let whole = || -> io::Result<()> {
            let new = beside(&self.path, "new");
            let mut bytes = Vec::new();
            for path in self.last.iter().chain(&self.open) {
                let path = std::path::absolute(path)?;
                bytes.extend_from_slice(path.as_os_str().as_bytes());
                bytes.push(SEPARATOR);
            }
            let mut file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .custom_flags(OFlags::NOFOLLOW.bits() as i32)
                .open(&new)?;
            file.write_all(&bytes)?;
            fs::rename(&new, &self.path)
        };
        // Without it a reader takes the newest session, which is nearly always the same.
        drop(whole());
    }
}

/// What a running collector writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collecting {
    /// The capture of the process that came last, if any came.
    pub last: Option<PathBuf>,
    /// The captures of the processes that speak now.
    pub open: Vec<PathBuf>,
}

impl Collecting {
    /// Asks at these sockets, in order. `None`: at none of them a collector of this user's or of root's listens.
    pub fn find(sockets: &[PathBuf]) -> Option<Self> {
        sockets.iter().find_map(|socket| Self::at(socket))
    }

    fn at(socket: &Path) -> Option<Self> {
        // The same as the shim asks of a collector.
        let me = rustix::process::geteuid();
        let trusted = |uid: u32| uid == me.as_raw() || uid == 0;
        let found = fs::symlink_metadata(socket).ok()?;
        if !found.file_type().is_socket() || !trusted(found.uid()) {
            return None;
        }
        let stream = UnixStream::connect(socket).ok()?;
        if !trusted(socket_peercred(&stream).ok()?.uid.as_raw()) {
            return None;
        }
        let bytes = fs::read(beside(socket, "now")).ok()?;
        let mut paths = bytes
            .split(|byte| *byte == SEPARATOR)
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(OsString::from_vec(path.to_vec())));
        let last = paths.next();
        Some(Self {
            last,
            open: paths.collect(),
        })
    }

    /// The folders of its captures.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self
            .last
            .iter()
            .chain(&self.open)
            .filter_map(|path| path.parent())
            .filter(|folder| folder.as_os_str() != OsStr::new(""))
            .map(Path::to_owned)
            .collect();
        folders.sort();
        folders.dedup();
        folders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_held_by_one_and_taken_over_from_the_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("own/collector.sock");
        let claim = Claim::take(&socket).expect("a claim");
        let held = Claim::take(&socket).expect_err("it is held");
        let CollectorError::Held { pid, .. } = held else {
            panic!("{held}");
        };
        assert_eq!(pid, Some(std::process::id()));
        // The socket stays when its collector is killed, the lock does not.
        drop(UnixListener::bind(&socket).expect("a socket"));
        drop(claim);
        let claim = Claim::take(&socket).expect("nobody listens");
        assert!(!socket.exists());
        drop(claim);
        // One that listens without a lock is not pushed aside.
        let listener = UnixListener::bind(&socket).expect("a socket");
        let held = Claim::take(&socket).expect_err("somebody listens");
        assert!(
            matches!(held, CollectorError::Held { pid: Some(pid), .. } if pid == std::process::id()),
            "{held}"
        );
        drop(listener);
        fs::remove_file(&socket).expect("the socket");
        fs::write(&socket, "mine").expect("a file");
        let refused = Claim::take(&socket).expect_err("a file of the user's");
        assert!(
            matches!(refused, CollectorError::Exists { .. }),
            "{refused}"
        );
        assert_eq!(fs::read(&socket).expect("the file"), b"mine");
    }

    #[test]
    fn the_list_is_believed_only_while_somebody_listens() {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("collector.sock");
        let sockets = [folder.path().join("none"), socket.clone()];
        let listener = UnixListener::bind(&socket).expect("a socket");
        assert_eq!(Collecting::find(&sockets), None, "a private collector");
        let mut roster = Roster::new(&socket);
        assert_eq!(Collecting::find(&sockets), Some(Collecting::default()));
        let [a, b] = ["/x/a", "/y/b\n"].map(PathBuf::from);
        roster.add(a.clone());
        roster.add(b.clone());
        roster.set(vec![a.clone()]);
        let found = Collecting::find(&sockets).expect("a collector");
        assert_eq!((&found.last, &found.open), (&Some(b.clone()), &vec![a]));
        assert_eq!(found.folders(), ["/x", "/y"].map(PathBuf::from));
        roster.set(Vec::new());
        let found = Collecting::find(&sockets).expect("a collector");
        assert_eq!((found.last, found.open), (Some(b), Vec::new()));
        drop(listener);
        assert_eq!(Collecting::find(&sockets), None);
    }
}
