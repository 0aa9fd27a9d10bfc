//! The thread of a collector that lives on: processes come and go, each is kept in a capture and then forgotten.
//!
//! Memory is that of the processes that are connected. What is heard goes to the capture at once, so that a reader of the
//! file sees a running process as it is now. Names are found on a thread of their own: looking into a large library takes
//! seconds, in which the others would have to wait.

use std::collections::{BTreeMap, HashMap};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use gpumem_wire::define::ProcessDefinition;
use gpumem_wire::{Chunk, Definition, DeviceOrdinal};

use crate::error::CollectorError;
use crate::ingest::capture::CaptureWriter;
use crate::ingest::decode::Decoded;
use crate::ingest::running::Roster;
use crate::ingest::server::{CONNECTIONS, Message};
use crate::model::totals::{DeviceTotals, Gauge, saturating_sum};
use crate::model::{Process, Session};
use crate::symbols;

/// Ended processes whose names are looked for, and that wait for it. Beyond them names are left to the first reader.
const WAITING_FOR_NAMES: usize = 8;

/// How long to wait for what connected processes wrote before they were hung up on. It is there already: only a reader that
/// cannot run at all makes this pass.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What a collector that lives on has to say as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A process speaks for the first time.
    Came {
        /// Its id, as it sees itself.
        pid: u32,
        /// Its command line.
        command: String,
        /// Where it is kept; `None` where it cannot be.
        capture: Option<PathBuf>,
    },
    /// A process speaks no more.
    Went {
        /// Its id, as it sees itself.
        pid: u32,
        /// Whether it said goodbye. If not it was killed, or runs another program in its place, or was hung up on.
        orderly: bool,
        /// From its start to its last word, in nanoseconds.
        lived_ns: u64,
        /// Bytes in use on all devices at its exit, else at the end.
        live_bytes: u64,
        /// The most bytes in use on its devices, each at its own peak.
        peak_bytes: u64,
    },
    /// What a person should know, as a sentence without an end mark.
    Said(String),
}

/// Opens the capture of a process that came. An error is a sentence: that process is not kept.
pub type Opener = Box<dyn FnMut(&Process) -> Result<Kept, String> + Send>;

/// Hears the news. It is called on the thread that serves the processes and must not wait.
pub type Listener = Box<dyn Fn(News) + Send>;

/// A capture and the number that a process has in it.
#[derive(Clone, Debug)]
pub struct Kept {
    capture: Arc<Mutex<CaptureWriter>>,
    number: u32,
}

impl Kept {
    /// A capture of this process alone, as a process that records by itself writes one.
    pub fn alone(capture: CaptureWriter) -> Self {
        Self {
            capture: Arc::new(Mutex::new(capture)),
            number: 0,
        }
    }

    /// A capture that several processes share; this one is the first.
    pub fn shared(capture: CaptureWriter) -> Self {
        Self {
            number: 1,
            ..Self::alone(capture)
        }
    }

    /// The same capture for the next process.
    #[must_use]
    pub fn next(&self) -> Self {
        Self {
            capture: Arc::clone(&self.capture),
            number: self.number.saturating_add(1),
        }
    }

    fn path(&self) -> PathBuf {
        self.writer().path().to_owned()
    }

    /// Whole chunks are written, so that one who failed while he held the lock left a capture that can be gone on with.
    fn writer(&self) -> MutexGuard<'_, CaptureWriter> {
        self.capture.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A process that speaks.
struct Record {
    /// A session of this process alone.
    session: Session,
    kept: Option<Kept>,
}

impl Record {
    fn process(&self) -> &Process {
        // A record is made together with its process.
        &self.session.processes[0]
    }
}

/// A peer, and which process it is, once it said so.
struct Peer {
    stream: UnixStream,
    record: Option<Record>,
}

/// Owns what is known of the connected processes.
pub(super) struct Keeper {
    peers: HashMap<u64, Peer>,
    open: Opener,
    tell: Listener,
    roster: Roster,
    names: Option<Names>,
    /// Whether it was said that a peer was turned away.
    refusal_said: bool,
}

impl Keeper {
    pub(super) fn new(open: Opener, tell: Listener, roster: Roster) -> Self {
        Self {
            peers: HashMap::new(),
            open,
            tell,
            roster,
            names: Names::start(),
            refusal_said: false,
        }
    }

    /// Hears until the end; then all is written.
    pub(super) fn serve(mut self, messages: &Receiver<Message>) {
        while let Ok(message) = messages.recv() {
            if let Message::Finish(_) = message {
                break;
            }
            self.hear(message);
        }
        self.hang_up(messages);
        self.roster.end();
        if let Some(names) = self.names.take() {
            names.end();
        }
    }

    /// Takes no more from anybody, and all that was sent already. A process whose next word fails goes on by itself.
    fn hang_up(&mut self, messages: &Receiver<Message>) {
        for peer in self.peers.values() {
            // What waits in the socket can still be read after this; then its reader comes to the end.
            drop(peer.stream.shutdown(Shutdown::Read));
        }
        while !self.peers.is_empty() {
            match messages.recv_timeout(LAST_WORDS) {
                Ok(message) => self.hear(message),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Opened { connection, stream } => {
                if self.peers.len() >= CONNECTIONS {
                    self.refuse(format!("{CONNECTIONS} processes are connected already"));
                    drop(stream.shutdown(Shutdown::Both));
                    return;
                }
                let record = None;
                self.peers.insert(connection, Peer { stream, record });
            }
            Message::Refused { why } => self.refuse(why),
            Message::Stuck { why } => self.say(format!(
                "processes have to wait for the collector, which cannot take them in: {why}"
            )),
            Message::Chunk {
                connection,
                chunk,
                decoded,
            } => {
                if let Err(why) = self.take(connection, chunk, decoded) {
                    self.lose(connection, Some(why));
                }
            }
            Message::Closed { connection, why } => self.lose(connection, why),
            Message::Finish(_) => {}
        }
    }

    /// Takes a chunk to the model and to the capture.
    fn take(&mut self, connection: u64, mut chunk: Chunk, decoded: Decoded) -> Result<(), String> {
        let is_new = match self.peers.get(&connection) {
            // It was thrown out while this chunk was on its way.
            None => return Ok(()),
            Some(peer) => peer.record.is_none(),
        };
        let begun = match is_new {
            true => Some(self.begin(&decoded)?),
            false => None,
        };
        let Some(peer) = self.peers.get_mut(&connection) else {
            return Ok(());
        };
        if begun.is_some() {
            peer.record = begun;
        }
        let record = peer.record.as_mut().ok_or("it has no process")?;
        if claims_another(record.process(), &decoded) {
            return Err("it claims to be two processes".into());
        }
        decoded.feed(&mut record.session, 0);
        let Some(kept) = &record.kept else {
            return Ok(());
        };
        chunk.process = kept.number;
        let written = kept.writer().chunk(&chunk);
        if let Err(error) = written {
            let pid = record.process().definition().pid;
            record.kept = None;
            self.say(format!("the recording of process {pid} ends here: {error}"));
            self.list();
        }
        Ok(())
    }

    /// Begins a record of the process that a stream's first chunk names.
    fn begin(&mut self, first: &Decoded) -> Result<Record, String> {
        let definition = process_of(first).ok_or("it did not say which process it is")?;
        let mut process = Process::default();
        process.define(Definition::Process(definition.clone()));
        let kept = (self.open)(&process);
        if let Ok(kept) = &kept {
            self.roster.add(kept.path());
        }
        let pid = definition.pid;
        (self.tell)(News::Came {
            pid,
            command: match &definition.command[..] {
                [] => definition.executable.clone(),
                words => words.join(" "),
            },
            capture: kept.as_ref().ok().map(Kept::path),
        });
        if let Err(why) = &kept {
            self.say(format!("process {pid} is not kept: {why}"));
        }
        let mut session = Session::default();
        session.processes.push(process);
        Ok(Record {
            session,
            kept: kept.ok(),
        })
    }

    /// A peer has gone, or broke the rules.
    fn lose(&mut self, connection: u64, why: Option<String>) {
        let Some(peer) = self.peers.remove(&connection) else {
            return;
        };
        drop(peer.stream.shutdown(Shutdown::Both));
        let pid = peer
            .record
            .as_ref()
            .map(|record| record.process().definition().pid);
        if let Some(why) = why {
            let name = pid.map_or_else(|| "a peer".into(), |pid| format!("process {pid}"));
            self.say(format!("the connection of {name} was closed: {why}"));
        }
        let Some(record) = peer.record else { return };
        (self.tell)(went(record.process()));
        self.list();
        if let (Some(kept), Some(names)) = (record.kept, &self.names)
            && record.session.processes[0].end().is_some()
        {
            names.find(record.session, kept);
        }
    }

    /// Says which captures are written now.
    fn list(&mut self) {
        let open = self.peers.values().filter_map(|peer| {
            let kept = peer.record.as_ref()?.kept.as_ref()?;
            Some(kept.path())
        });
        self.roster.set(open.collect());
    }

    fn refuse(&mut self, why: String) {
        if !core::mem::replace(&mut self.refusal_said, true) {
            self.say(format!(
                "a connection was turned away, as others will be without a word: {why}"
            ));
        }
    }

    fn say(&self, sentence: String) {
        (self.tell)(News::Said(sentence));
    }
}

/// The process that a chunk begins with.
fn process_of(decoded: &Decoded) -> Option<&ProcessDefinition> {
    let Decoded::Definitions { definitions, .. } = decoded else {
        return None;
    };
    match definitions.first() {
        Some(Definition::Process(process)) => Some(process),
        _ => None,
    }
}

/// Whether a chunk says that its sender is another process than before.
fn claims_another(process: &Process, decoded: &Decoded) -> bool {
    let Decoded::Definitions { definitions, .. } = decoded else {
        return false;
    };
    definitions
        .iter()
        .any(|definition| matches!(definition, Definition::Process(other) if !process.is(other)))
}

fn went(process: &Process) -> News {
    let at_exit = process.at_exit().map(|at_exit| &at_exit.totals);
    let on_devices = |totals: &BTreeMap<DeviceOrdinal, DeviceTotals>, bytes: fn(&Gauge) -> u64| {
        let on_devices = totals.iter().filter(|(device, _)| device.0 >= 0);
        saturating_sum(on_devices.map(|(_, totals)| bytes(&totals.live)))
    };
    let definition = process.definition();
    News::Went {
        pid: definition.pid,
        orderly: process.end().is_some_and(|end| end.orderly),
        lived_ns: process.last_ns().saturating_sub(definition.started_ns),
        live_bytes: on_devices(at_exit.unwrap_or(process.totals()), |live| live.live_bytes),
        peak_bytes: on_devices(process.totals(), |live| live.peak_bytes),
    }
}

/// The thread that finds the names of ended processes.
struct Names {
    ended: Sender<(Session, Kept)>,
    thread: JoinHandle<()>,
}

impl Names {
    /// `None` where no thread can be started: then names are left to readers.
    fn start() -> Option<Self> {
        let (ended, waiting) = bounded::<(Session, Kept)>(WAITING_FOR_NAMES);
        let thread = thread::Builder::new()
            .name("gpumem-names".into())
            .spawn(move || {
                for (session, kept) in waiting {
                    // A reader finds those that cannot be written.
                    let _: Result<(), CollectorError> = name(session, &kept);
                }
            })
            .ok()?;
        Some(Self { ended, thread })
    }

    /// Finds names as soon as there is time. Where too many wait, readers do.
    fn find(&self, session: Session, kept: Kept) {
        drop(self.ended.try_send((session, kept)));
    }

    /// Waits for what was begun.
    fn end(self) {
        drop(self.ended);
        drop(self.thread.join());
    }
}

fn name(mut session: Session, kept: &Kept) -> Result<(), CollectorError> {
    for process in &mut session.processes {
        let found = symbols::symbolise(process);
        kept.writer().definitions(kept.number, &found)?;
    }
    Ok(())
}
