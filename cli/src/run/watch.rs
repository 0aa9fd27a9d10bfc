//! Ends a program whose time is over.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// How long a program may take to end once it was asked to.
const GRACE: Duration = Duration::from_secs(5);

/// A watch over a program.
pub(super) struct Watch {
    ended: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Watch {
    /// Watches from now on. The process id must stay taken until [`Watch::end`].
    pub(super) fn over(pid: u32, timeout: Duration) -> Self {
        let (ended, end) = channel::<()>();
        let thread = thread::spawn(move || {
            let is_over = |span| end.recv_timeout(span) == Err(RecvTimeoutError::Timeout);
            if !is_over(timeout) {
                return false;
            }
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // One that is just ending needs no signal any more.
                let _ = kill_process(pid, Signal::TERM);
                if is_over(GRACE) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            true
        });
        Self { ended, thread }
    }

    /// The program has ended. Says whether its time was over.
    pub(super) fn end(self) -> bool {
        drop(self.ended);
        self.thread.join().unwrap_or(false)
    }
}
