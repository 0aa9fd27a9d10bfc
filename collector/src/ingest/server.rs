//! The collector's socket: streams of running processes become models and a capture.
//!
//! One thread accepts, one thread a connection reads and decodes, one thread owns the models and the captures: a `hub` that
//! keeps a whole session in one capture (`gpumem run`), or a [`keeper`] that lives on while processes come and go (`gpumem
//! collect`). A stream is chunks, nothing else: first its process's definition, at last its goodbye. What comes is checked
//! where it comes in; a bad stream is closed with one sentence, and nothing else suffers.

mod hub;
pub mod keeper;
mod peers;

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Sender, bounded};
use gpumem_wire::Chunk;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::error::CollectorError;
use crate::ingest::capture::CaptureWriter;
use crate::ingest::decode::Decoded;
use crate::ingest::running::{Claim, Roster, check_folder, folder_of};
use crate::ingest::server::hub::Hub;
use crate::ingest::server::keeper::{Keeper, Listener, Opener};
use crate::model::Session;

/// Decoded chunks that wait for the models.
const WAITING_CHUNKS: usize = 16;

/// Connections at one time.
const CONNECTIONS: usize = 1024;

/// Descriptors that a full collector needs, and some to spare.
const DESCRIPTORS: u64 = 4096;

/// How long [`Running::finish`] waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishPolicy {
    /// Until every process that has ended is read to its end; for processes that outlive the program only until nothing
    /// was heard of the others for so long.
    Quiet(Duration),
    /// Until every connection was closed by its process.
    WaitForAll,
}

/// What a collector leaves behind.
pub struct Finished {
    /// Everything that was heard, with names.
    pub session: Session,
    /// The session's notes.
    pub notes: Vec<String>,
    /// The capture, if one was written.
    pub capture: Option<PathBuf>,
}

/// A socket that nobody serves yet.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
}

impl Server {
    /// Makes the socket, and its folder where that is missing. The folder must be a real one, ours, and closed to others.
    ///
    /// # Errors
    /// [`CollectorError::UnsafeFolder`], [`CollectorError::Exists`] or [`CollectorError::Io`].
    pub fn bind(path: &Path) -> Result<Self, CollectorError> {
        check_folder(folder_of(path))?;
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => CollectorError::Exists { path: path.into() },
            _ => CollectorError::io(path)(error),
        })?;
        // Between the two calls the folder's mode keeps others out.
        fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(CollectorError::io(path))?;
        listener
            .set_nonblocking(true)
            .map_err(CollectorError::io(path))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Serves the socket until [`Running::finish`], writing a capture if one is given.
    ///
    /// # Errors
    /// [`CollectorError::Io`] if a thread cannot be started.
    pub fn start(self, capture: Option<CaptureWriter>) -> Result<Running, CollectorError> {
        let Self { listener, path } = self;
        let io = || CollectorError::io(&path);
        let session = Arc::new(Mutex::new(Session::default()));
        let (sender, receiver) = bounded(WAITING_CHUNKS);
        let (stop, stopped) = UnixStream::pair().map_err(io())?;
        let hub = Hub::new(Arc::clone(&session), capture);
        let to_hub = sender.clone();
        let acceptor = thread::Builder::new()
            .name("gpumem-accept".into())
            .spawn(move || peers::accept_all(&listener, &stopped, &to_hub))
            .map_err(io())?;
        let hub = thread::Builder::new()
            .name("gpumem-model".into())
            .spawn(move || hub.serve(&receiver))
            .map_err(io())?;
        Ok(Running {
            session,
            path,
            stop,
            acceptor,
            sender,
            hub,
        })
    }
}

/// A collector that lives on: processes come and go.
pub struct Keeping {
    path: PathBuf,
    stop: UnixStream,
    acceptor: JoinHandle<()>,
    sender: Sender<Message>,
    keeper: JoinHandle<()>,
    /// Given up last, when the socket is gone.
    claim: Claim,
}

impl Keeping {
    /// Takes over a socket, from nobody or from a collector that is no more, and serves it until [`Keeping::finish`].
    ///
    /// # Errors
    /// Those of [`Claim::take`] and [`Server::bind`].
    pub fn start(path: &Path, open: Opener, tell: Listener) -> Result<Self, CollectorError> {
        let claim = Claim::take(path)?;
        let Server { listener, path } = Server::bind(path)?;
        let io = || CollectorError::io(&path);
        let keeper = Keeper::new(open, tell, Roster::new(&path));
        let (sender, receiver) = bounded(WAITING_CHUNKS);
        let (stop, stopped) = UnixStream::pair().map_err(io())?;
        let to_keeper = sender.clone();
        let acceptor = thread::Builder::new()
            .name("gpumem-accept".into())
            .spawn(move || peers::accept_all(&listener, &stopped, &to_keeper))
            .map_err(io())?;
        let keeper = thread::Builder::new()
            .name("gpumem-keep".into())
            .spawn(move || keeper.serve(&receiver))
            .map_err(io())?;
        Ok(Self {
            path,
            stop,
            acceptor,
            sender,
            keeper,
            claim,
        })
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes no more connections, writes what the processes sent so far, hangs up on them and removes the socket. They go on
    /// and record by themselves. Says whether all of that went well.
    pub fn finish(self) -> bool {
        // First the socket: who comes now finds nobody and does not wait.
        drop(fs::remove_file(&self.path));
        drop(self.stop);
        let accepted = self.acceptor.join().is_ok();
        let policy = FinishPolicy::Quiet(Duration::ZERO);
        let told = self.sender.send(Message::Finish(policy)).is_ok();
        let kept = self.keeper.join().is_ok();
        drop(self.claim);
        accepted && told && kept
    }
}

/// Lets this process open as many files as the system allows it, within what a full collector needs: each connection takes two
/// descriptors, and the usual soft limit is 1024. A program that is started later would inherit that, so start it before.
pub fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    let needed = DESCRIPTORS.min(limit.maximum.unwrap_or(DESCRIPTORS));
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(needed);
        // Where it is not allowed fewer can be connected at a time, and it is said when they are too many.
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// A collector at work.
pub struct Running {
    session: Arc<Mutex<Session>>,
    path: PathBuf,
    stop: UnixStream,
    acceptor: JoinHandle<()>,
    sender: Sender<Message>,
    hub: JoinHandle<Option<PathBuf>>,
}

impl Running {
    /// The models as they are now. The collector waits while the lock is held.
    pub fn session(&self) -> MutexGuard<'_, Session> {
        lock(&self.session)
    }

    /// The models, to be looked at from another thread.
    pub fn shared_session(&self) -> Arc<Mutex<Session>> {
        Arc::clone(&self.session)
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// After the program ended: takes no more connections, hears out those that are there, finds the names of all frames,
    /// adds them to the capture and closes it. The socket is removed.
    pub fn finish(self, policy: FinishPolicy) -> Finished {
        // Dropping our end wakes the acceptor, which takes what is already waiting and ends.
        drop(self.stop);
        let acceptor_failed = self.acceptor.join().is_err();
        let unheard = self.sender.send(Message::Finish(policy)).is_err();
        let capture = self.hub.join();
        drop(fs::remove_file(&self.path));
        let mut session = core::mem::take(&mut *lock(&self.session));
        if acceptor_failed || unheard || capture.is_err() {
            session.note("a part of the collector failed: what follows may be incomplete".into());
        }
        Finished {
            notes: session.notes.clone(),
            session,
            capture: capture.ok().flatten(),
        }
    }
}

/// A thread that failed while it held the lock left whole events behind: the model stays readable.
fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the threads tell the hub.
enum Message {
    /// A peer was accepted.
    Opened { connection: u64, stream: UnixStream },
    /// A peer was turned away.
    Refused { why: String },
    /// Nobody can be accepted for now.
    Stuck { why: String },
    /// A chunk came.
    Chunk {
        connection: u64,
        chunk: Chunk,
        decoded: Decoded,
    },
    /// The stream is at its end, or is no stream of ours.
    Closed {
        connection: u64,
        why: Option<String>,
    },
    /// No more connections come.
    Finish(FinishPolicy),
}

#[cfg(test)]
mod tests;
