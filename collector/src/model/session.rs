//! A session: the processes that belong together.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::model::process::{Process, State};

/// Processes in one session.
pub const PROCESSES: usize = 4096;

/// The processes of one capture, of one run, or of one job.
#[derive(Default)]
pub struct Session {
    /// The processes, in the order in which they were first seen.
    pub processes: Vec<Process>,
    /// The captures it was read from; empty for one that came over a socket.
    pub files: Vec<PathBuf>,
    /// Whether a file ended in the middle of a record, as one does whose writer was killed.
    pub truncated: bool,
    /// What a reader should know about how the session was read, in sentences.
    pub notes: Vec<String>,
    /// Bytes of all definitions, about.
    pub(crate) definition_bytes: usize,
}

impl Session {
    /// The process with this id, the last if several had it.
    pub fn process(&self, pid: u32) -> Option<&Process> {
        self.processes
            .iter()
            .rev()
            .find(|process| process.definition().pid == pid)
    }

    /// Makes room for a process more, and gives its index; `None` where there are [`PROCESSES`] already.
    pub fn add_process(&mut self) -> Option<usize> {
        if self.processes.len() >= PROCESSES {
            self.note_once(format!(
                "there are more than {PROCESSES} processes: the rest is left out"
            ));
            return None;
        }
        self.processes.push(Process::default());
        Some(self.processes.len() - 1)
    }

    /// A process that ran another program in its place was not killed, although it could not say goodbye.
    pub fn end_replaced(&mut self) {
        // Backwards, with what each process id stands for later: one program, or several.
        let mut later: HashMap<_, Option<u64>> = HashMap::new();
        let mut replaced = Vec::new();
        for (index, process) in self.processes.iter().enumerate().rev() {
            let definition = process.definition();
            let id = (
                definition.pid,
                definition.start_ticks,
                definition.pid_namespace,
                definition.boot_id.as_str(),
                definition.host.as_str(),
            );
            match later.get_mut(&id) {
                Some(nonce) if *nonce != Some(definition.nonce) => {
                    replaced.push(index);
                    *nonce = None;
                }
                Some(_) => {}
                None => drop(later.insert(id, Some(definition.nonce))),
            }
        }
        for index in replaced {
            if let Some(process) = self.processes.get_mut(index) {
                process.set_state(State::Ended);
            }
        }
    }

    /// Adds a note that is not there yet.
    pub fn note_once(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.note(note);
        }
    }

    /// Adds a note, unless there are far too many.
    pub fn note(&mut self, note: String) {
        const NOTES: usize = 1000;
        if self.notes.len() < NOTES {
            self.notes.push(note);
        }
    }
}
