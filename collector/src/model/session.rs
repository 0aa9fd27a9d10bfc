//! A session: the processes that belong together.

use std::path::PathBuf;

use crate::model::process::{Process, State};

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
}

impl Session {
    /// The process with this id, the last if several had it.
    pub fn process(&self, pid: u32) -> Option<&Process> {
        self.processes
            .iter()
            .rev()
            .find(|process| process.definition().pid == pid)
    }

    /// A process that ran another program in its place was not killed, although it could not say goodbye.
    pub fn end_replaced(&mut self) {
        for index in 0..self.processes.len() {
            let (former, later) = self.processes.split_at_mut(index);
            let Some(successor) = later.first() else {
                continue;
            };
            for process in former {
                if process.became(successor.definition()) {
                    process.set_state(State::Ended);
                }
            }
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
