//! The thread that owns the models and the capture.

use std::collections::HashMap;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use gpumem_wire::{Chunk, Definition};

use crate::error::CollectorError;
use crate::ingest::capture::CaptureWriter;
use crate::ingest::decode::Decoded;
use crate::ingest::liveness::{Liveness, liveness};
use crate::ingest::server::{CONNECTIONS, FinishPolicy, Message, WAITING_CHUNKS, lock};
use crate::model::session::PROCESSES;
use crate::model::{Session, State};
use crate::symbols;

/// A peer.
struct Connection {
    stream: UnixStream,
    /// Which process it is, once it said so.
    process: Option<usize>,
}

/// Owns the models and the capture.
pub(super) struct Hub {
    session: Arc<Mutex<Session>>,
    capture: Option<CaptureWriter>,
    written: Option<PathBuf>,
    connections: HashMap<u64, Connection>,
}

impl Hub {
    pub(super) fn new(session: Arc<Mutex<Session>>, capture: Option<CaptureWriter>) -> Self {
        Self {
            session,
            capture,
            written: None,
            connections: HashMap::new(),
        }
    }

    /// Hears until the end, and gives the capture's path.
    pub(super) fn serve(mut self, messages: &Receiver<Message>) -> Option<PathBuf> {
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
        let quiet = match policy {
            FinishPolicy::Quiet(quiet) => quiet,
            FinishPolicy::WaitForAll => Duration::MAX,
        };
        let mut last_news = Instant::now();
        while !self.connections.is_empty() {
            let patience = quiet.saturating_sub(last_news.elapsed());
            let mut news = false;
            match messages.recv_timeout(patience) {
                Ok(message) => news |= self.hear_news(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if last_news.elapsed() >= quiet {
                // What was said in time may wait behind one that talks for ever.
                for message in messages.try_iter().take(WAITING_CHUNKS) {
                    news |= self.hear_news(message);
                }
                if !news {
                    break;
                }
            }
            if news {
                last_news = Instant::now();
            }
        }
    }

    /// Hears a message, and says whether it is news: a process that lives on may talk for ever.
    fn hear_news(&mut self, message: Message) -> bool {
        let news = self.speaker_has_ended(&message);
        self.hear(message);
        news
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
            Message::Stuck { why } => self.note(format!(
                "processes had to wait for the collector, which could not take them in: {why}"
            )),
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
        let process = session.processes.get(index).ok_or("it has no process")?;
        if let Decoded::Definitions { definitions, .. } = &decoded
            && definitions
                .iter()
                .any(|definition| matches!(definition, Definition::Process(other) if *process.definition() != Default::default() && !process.is(other)))
        {
            return Err("it claims to be two processes".into());
        }
        decoded.feed(&mut session, index);
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
    session
        .add_process()
        .ok_or_else(|| format!("there are {PROCESSES} processes already"))
}
