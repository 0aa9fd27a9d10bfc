//! The collector's socket: streams of running processes become models and a capture.
//!
//! One thread accepts, one thread a connection reads and decodes, one thread owns the models and the capture. A stream is
//! chunks, nothing else: first its process's definition, at last its goodbye. What comes is checked where it comes in; a bad
//! stream is closed with one sentence in the session's notes, and nothing else suffers.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use gpumem_wire::chunk::HEADER_BYTES;
use gpumem_wire::{Chunk, ChunkHeader, Definition};
use rustix::event::{PollFd, PollFlags, poll};

use crate::error::CollectorError;
use crate::ingest::capture::{CaptureWriter, read_up_to};
use crate::ingest::decode::Decoded;
use crate::ingest::liveness::{Liveness, liveness};
use crate::model::{Process, Session, State};
use crate::symbols;

/// Connections at one time.
const CONNECTIONS: usize = 1024;
/// Processes in one session.
const PROCESSES: usize = 4096;
/// Decoded chunks that wait for the models.
const WAITING_CHUNKS: usize = 16;

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
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        check_folder(folder.unwrap_or(Path::new(".")))?;
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
        let hub = Hub {
            session: Arc::clone(&session),
            capture,
            written: None,
            connections: HashMap::new(),
        };
        let to_hub = sender.clone();
        let acceptor = thread::Builder::new()
            .name("gpumem-accept".into())
            .spawn(move || accept_all(&listener, &stopped, &to_hub))
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

/// Makes the folder or checks the one that is there.
fn check_folder(folder: &Path) -> Result<(), CollectorError> {
    let unsafe_folder = |why| CollectorError::UnsafeFolder {
        path: folder.into(),
        why,
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
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

fn accept_all(listener: &UnixListener, stopped: &UnixStream, hub: &Sender<Message>) {
    let mut number = 0;
    loop {
        let mut ready = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(stopped, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        let stop = !ready[1].revents().is_empty();
        while let Ok((stream, _)) = listener.accept() {
            number += 1;
            let message = match welcome(&stream).and_then(|()| stream.try_clone()) {
                Ok(own) => {
                    let to_hub = hub.clone();
                    let reader = thread::Builder::new()
                        .name("gpumem-read".into())
                        .stack_size(256 << 10);
                    let opened = hub.send(Message::Opened {
                        connection: number,
                        stream: own,
                    });
                    if opened.is_err() {
                        return;
                    }
                    match reader.spawn(move || read_stream(number, stream, &to_hub)) {
                        Ok(_) => continue,
                        Err(error) => Message::Closed {
                            connection: number,
                            why: Some(format!("no thread could be started for it: {error}")),
                        },
                    }
                }
                Err(error) => Message::Refused {
                    why: error.to_string(),
                },
            };
            if hub.send(message).is_err() {
                return;
            }
        }
        if stop {
            return;
        }
    }
}

/// Only processes of ours and root's may speak.
fn welcome(stream: &UnixStream) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid == rustix::process::geteuid() || peer.uid.is_root() {
        return stream.set_nonblocking(false);
    }
    let (pid, user) = (peer.pid.as_raw_nonzero(), peer.uid.as_raw());
    Err(io::Error::other(format!(
        "process {pid} of user {user} is not allowed to speak here"
    )))
}

fn read_stream(connection: u64, mut stream: UnixStream, hub: &Sender<Message>) {
    let why = loop {
        match read_chunk(&mut stream) {
            Ok(Some((chunk, decoded))) => {
                let message = Message::Chunk {
                    connection,
                    chunk,
                    decoded,
                };
                if hub.send(message).is_err() {
                    return;
                }
            }
            Ok(None) => break None,
            Err(why) => break Some(why),
        }
    };
    // The hub is gone only when nobody wants to know any more.
    drop(hub.send(Message::Closed { connection, why }));
}

/// One chunk of a stream; `None` at its end, also in the middle of a chunk: then the process was killed while it wrote.
fn read_chunk(stream: &mut UnixStream) -> Result<Option<(Chunk, Decoded)>, String> {
    let mut bytes = [0; HEADER_BYTES];
    let have = read_up_to(stream, &mut bytes).map_err(|error| error.to_string())?;
    if have < HEADER_BYTES {
        return Ok(None);
    }
    let header = ChunkHeader::parse(&bytes).map_err(|error| error.to_string())?;
    let mut stored = vec![0; header.stored_bytes as usize];
    let have = read_up_to(stream, &mut stored).map_err(|error| error.to_string())?;
    if have < stored.len() {
        return Ok(None);
    }
    let chunk = Chunk::from_stored(&header, &stored).map_err(|error| error.to_string())?;
    let decoded = Decoded::of(&chunk).map_err(|error| error.to_string())?;
    Ok(Some((chunk, decoded)))
}

/// A peer.
struct Connection {
    stream: UnixStream,
    /// Which process it is, once it said so.
    process: Option<usize>,
}

/// The thread that owns the models and the capture.
struct Hub {
    session: Arc<Mutex<Session>>,
    capture: Option<CaptureWriter>,
    written: Option<PathBuf>,
    connections: HashMap<u64, Connection>,
}

impl Hub {
    /// Hears until the end, and gives the capture's path.
    fn serve(mut self, messages: &Receiver<Message>) -> Option<PathBuf> {
        let policy = loop {
            match messages.recv() {
                Ok(Message::Finish(policy)) => break policy,
                Ok(message) => self.hear(message),
                Err(_) => break FinishPolicy::Quiet(Duration::ZERO),
            }
        };
        self.hear_out(messages, policy);
        self.close();
        self.written
    }

    fn hear_out(&mut self, messages: &Receiver<Message>, policy: FinishPolicy) {
        let mut last_news = Instant::now();
        while !self.connections.is_empty() {
            let patience = match policy {
                FinishPolicy::WaitForAll => Duration::from_secs(3600),
                FinishPolicy::Quiet(quiet) => quiet.saturating_sub(last_news.elapsed()),
            };
            match messages.recv_timeout(patience) {
                Ok(message) => {
                    // A process that lives on may talk for ever: it is no news.
                    if self.speaker_has_ended(&message) {
                        last_news = Instant::now();
                    }
                    self.hear(message);
                }
                Err(RecvTimeoutError::Timeout) if policy == FinishPolicy::WaitForAll => {}
                Err(_) => break,
            }
            if let FinishPolicy::Quiet(quiet) = policy
                && last_news.elapsed() >= quiet
                && messages.is_empty()
            {
                break;
            }
        }
    }

    fn speaker_has_ended(&self, message: &Message) -> bool {
        let Message::Chunk { connection, .. } = message else {
            return true;
        };
        let Some(index) = self
            .connections
            .get(connection)
            .and_then(|peer| peer.process)
        else {
            return true;
        };
        let session = lock(&self.session);
        session
            .processes
            .get(index)
            .is_none_or(|process| liveness(process.definition()) != Liveness::Running)
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Opened { connection, stream } => {
                if self.connections.len() >= CONNECTIONS {
                    self.note(format!(
                        "a connection was turned away: {CONNECTIONS} processes are connected already"
                    ));
                    drop(stream.shutdown(Shutdown::Both));
                    return;
                }
                let process = None;
                self.connections
                    .insert(connection, Connection { stream, process });
            }
            Message::Refused { why } => self.note(format!("a connection was turned away: {why}")),
            Message::Chunk {
                connection,
                chunk,
                decoded,
            } => {
                if let Err(why) = self.take(connection, chunk, decoded) {
                    self.throw_out(connection, &why);
                }
            }
            Message::Closed {
                connection,
                why: Some(why),
            } => self.throw_out(connection, &why),
            Message::Closed {
                connection,
                why: None,
            } => {
                let index = self
                    .connections
                    .remove(&connection)
                    .and_then(|connection| connection.process);
                if let Some(index) = index {
                    self.set_state(index, State::Killed);
                }
            }
            Message::Finish(_) => {}
        }
    }

    /// Takes a chunk to the model and to the capture.
    fn take(&mut self, connection: u64, mut chunk: Chunk, decoded: Decoded) -> Result<(), String> {
        let Some(peer) = self.connections.get_mut(&connection) else {
            // It was thrown out while this chunk was on its way.
            return Ok(());
        };
        let mut session = lock(&self.session);
        let index = match peer.process {
            Some(index) => index,
            None => {
                let index = introduce(&mut session, &decoded)?;
                peer.process = Some(index);
                index
            }
        };
        let process = session
            .processes
            .get_mut(index)
            .ok_or("it has no process")?;
        if let Decoded::Definitions { definitions, .. } = &decoded
            && definitions
                .iter()
                .any(|definition| matches!(definition, Definition::Process(other) if *process.definition() != Default::default() && !process.is(other)))
        {
            return Err("it claims to be two processes".into());
        }
        decoded.feed(process);
        drop(session);
        // In a capture of many processes 0 would mean "the only one".
        chunk.process = index as u32 + 1;
        self.write(|capture| capture.chunk(&chunk));
        Ok(())
    }

    /// Writes to the capture; when that fails it is given up, with a note.
    fn write(&mut self, write: impl FnOnce(&mut CaptureWriter) -> Result<(), CollectorError>) {
        if let Some(capture) = &mut self.capture
            && let Err(error) = write(capture)
        {
            self.capture = None;
            self.note(format!("the capture ends here: {error}"));
        }
    }

    /// Closes a connection that broke the rules.
    fn throw_out(&mut self, connection: u64, why: &str) {
        let Some(connection) = self.connections.remove(&connection) else {
            return;
        };
        drop(connection.stream.shutdown(Shutdown::Both));
        let name = match connection.process {
            Some(index) => lock(&self.session)
                .processes
                .get(index)
                .map(|process| format!("process {}", process.definition().pid)),
            None => None,
        };
        let name = name.unwrap_or_else(|| "a peer".into());
        self.note(format!("the connection of {name} was closed: {why}"));
    }

    fn note(&self, note: String) {
        lock(&self.session).note(note);
    }

    fn set_state(&self, index: usize, state: State) {
        if let Some(process) = lock(&self.session).processes.get_mut(index) {
            process.set_state(state);
        }
    }

    /// Ends what still speaks, names all frames, closes the capture.
    fn close(&mut self) {
        let open = core::mem::take(&mut self.connections);
        for connection in open.into_values() {
            drop(connection.stream.shutdown(Shutdown::Both));
            let Some(index) = connection.process else {
                continue;
            };
            let mut session = lock(&self.session);
            let Some(process) = session.processes.get_mut(index) else {
                continue;
            };
            let pid = process.definition().pid;
            if liveness(process.definition()) == Liveness::Gone {
                process.set_state(State::Killed);
            } else {
                session.note(format!(
                    "process {pid} outlived the program: what it did later is not in this capture"
                ));
            }
        }
        let count = {
            let mut session = lock(&self.session);
            session.end_replaced();
            session.processes.len()
        };
        for index in 0..count {
            let found = match lock(&self.session).processes.get_mut(index) {
                Some(process) => symbols::symbolise(process),
                None => Vec::new(),
            };
            self.write(|capture| capture.definitions(index as u32 + 1, &found));
        }
        self.written = self.capture.take().map(CaptureWriter::finish);
    }
}

/// Finds or makes the process that a stream's first chunk names.
fn introduce(session: &mut Session, first: &Decoded) -> Result<usize, String> {
    let Decoded::Definitions { definitions, .. } = first else {
        return Err("it did not say which process it is".into());
    };
    let Some(Definition::Process(definition)) = definitions.first() else {
        return Err("it did not say which process it is".into());
    };
    if let Some(known) = session
        .processes
        .iter()
        .position(|process| process.is(definition))
    {
        return Ok(known);
    }
    if session.processes.len() >= PROCESSES {
        return Err(format!("there are {PROCESSES} processes already"));
    }
    session.processes.push(Process::default());
    Ok(session.processes.len() - 1)
}

#[cfg(test)]
mod tests;
