//! The connection to a collector: only to one of the same user or of root, over a file descriptor out of the program's way.

use std::fs;
use std::io;
use std::mem::{ManuallyDrop, size_of};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Descriptors from here on: programs that close "all" theirs, or count on small ones, are less likely to meet ours.
const HIGH_FD: [RawFd; 3] = [900, 200, 3];

/// Connects to a collector that may see what this process does.
///
/// # Errors
/// When nothing listens there, or when the socket or its listener belongs to somebody else.
pub(crate) fn connect(path: &Path) -> io::Result<Guarded> {
    // SAFETY: a system call without arguments.
    let ours = unsafe { libc::getuid() };
    let trusted = |uid: u32| uid == ours || uid == 0;
    let found = fs::symlink_metadata(path)?;
    if !found.file_type().is_socket() || !trusted(found.uid()) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "not a socket of this user or of root",
        ));
    }
    let stream = UnixStream::connect(path)?;
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: 0,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: SO_PEERCRED writes one ucred of the length given.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        )
    };
    if status != 0 || !trusted(peer.uid) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the listener belongs to another user",
        ));
    }
    Guarded::new(stream.into())
}

/// A descriptor of ours in a process that may close or reuse any number: before each write it is checked to be still ours.
pub(crate) struct Guarded {
    fd: ManuallyDrop<OwnedFd>,
    device: u64,
    inode: u64,
}

impl Guarded {
    /// Moves a descriptor out of the way and remembers what it is.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        // Asked of the number that nobody else has had yet: the program may take the high one at any moment.
        let (device, inode) = identity(fd.as_raw_fd()).ok_or_else(io::Error::last_os_error)?;
        let high = HIGH_FD.into_iter().find_map(|least| {
            // SAFETY: duplicates a descriptor that we own; the result is a new one that nobody else has.
            let copy = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) };
            // SAFETY: as above.
            (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
        });
        let fd = ManuallyDrop::new(high.unwrap_or(fd));
        Ok(Self { fd, device, inode })
    }

    /// The descriptor's number.
    pub(crate) fn number(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// What the descriptor stands for: device and inode.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    /// Whether the number still means what we opened.
    pub(crate) fn is_ours(&self) -> bool {
        identity(self.number()) == Some((self.device, self.inode))
    }

    /// Writes all of `bytes`, without SIGPIPE.
    ///
    /// # Errors
    /// When the other side is gone, the disk is full, or the program took the descriptor from us.
    pub(crate) fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        if !self.is_ours() {
            return Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the program closed our descriptor",
            ));
        }
        while !bytes.is_empty() {
            // SAFETY: the buffer is valid for its length. `send` fails with ENOTSOCK on a file, which `write` then takes.
            let mut wrote = unsafe {
                libc::send(
                    self.number(),
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    libc::MSG_NOSIGNAL,
                )
            };
            if wrote < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOTSOCK) {
                // SAFETY: as above.
                wrote = unsafe { libc::write(self.number(), bytes.as_ptr().cast(), bytes.len()) };
            }
            match usize::try_from(wrote) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(count) => bytes = bytes.get(count..).unwrap_or(&[]),
                Err(_) => {
                    let error = io::Error::last_os_error();
                    if error.kind() != io::ErrorKind::Interrupted {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A number that is somebody else's by now must not be closed: that would harm the program.
        if self.is_ours() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

/// Which file a descriptor stands for. Async-signal-safe.
pub(crate) fn identity(fd: RawFd) -> Option<(u64, u64)> {
    // SAFETY: the structure is ours; any number may be asked.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        (libc::fstat(fd, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}
