//! Signals while a program runs: they are its affair, not ours.
//!
//! What the terminal sends (Ctrl-C, a hang-up) reaches the whole foreground group, so the program has it already; what
//! another process sends to us alone is passed on. The kernel says which it was.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::flag::register_conditional_default;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Sent};

/// Signals that a person or a batch system sends to a job.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Signals are held back, and passed on once the program is there.
pub(super) struct Forwarding {
    handle: Handle,
    program: Sender<u32>,
    thread: JoinHandle<()>,
    over: Arc<AtomicBool>,
}

impl Forwarding {
    /// Takes the signals from here on.
    pub(super) fn begin() -> io::Result<Self> {
        // A process may run several programs, one after the other; the signals are taken once.
        static OVER: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let is_first = OVER.get().is_none();
        let over = Arc::clone(OVER.get_or_init(Arc::default));
        over.store(false, Ordering::Relaxed);
        if is_first {
            for signal in PASSED_ON {
                register_conditional_default(signal, Arc::clone(&over))?;
            }
        }
        let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON)?;
        let handle = signals.handle();
        let (program, named) = channel();
        let thread = thread::Builder::new()
            .name("gpumem-signals".into())
            .spawn(move || {
                let Some(pid) = named.recv().ok().and_then(as_pid) else {
                    return;
                };
                for origin in &mut signals {
                    if by_a_process(origin.cause)
                        && let Some(signal) = Signal::from_named_raw(origin.signal)
                    {
                        // A program that is just ending needs no signal any more.
                        let _ = kill_process(pid, signal);
                    }
                }
            })?;
        Ok(Self {
            handle,
            program,
            thread,
            over,
        })
    }

    /// Passes on what came so far and what comes.
    pub(super) fn to(&self, pid: u32) {
        // The thread waits for it until its end.
        let _ = self.program.send(pid);
    }

    /// Passes nothing on any more; from here on a signal ends us. Call it while the program's process id is still taken.
    pub(super) fn end(self) {
        // The flag stands alone: no other memory is read by who sees it set.
        self.over.store(true, Ordering::Relaxed);
        self.handle.close();
        drop(self.program);
        drop(self.thread.join());
    }
}

fn as_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Whether a process sent it, rather than the terminal.
fn by_a_process(cause: Cause) -> bool {
    matches!(cause, Cause::Sent(Sent::User | Sent::Queue | Sent::TKill))
}
