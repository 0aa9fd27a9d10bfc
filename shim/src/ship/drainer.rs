//! The drainer: reads the rings in order and never blocks.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crossbeam_channel::{Sender, TrySendError, bounded};
use gpumem_wire::define::{Definition, PythonStatus};

use crate::fuse::{self, Reason};
use crate::record::clock;
use crate::record::ring::{LOST, Rings, rings_are_wanted};
use crate::ship::writer::{self, Batch, Lost};
use crate::stack;

/// Batches that wait for the writer.
const CHANNEL: usize = 32;
/// Numbers in one batch, at most.
const BATCH_EVENTS: u64 = 16 << 10;
/// How long the drainer sleeps when nothing happens.
const NAP_NS: i64 = 100_000_000;
/// How long it waits when the writer is behind.
const BACK_OFF_NS: i64 = 1_000_000;
/// How often it looks for threads that are gone.
const REAP_EVERY_NS: u64 = 100_000_000;
/// A flush gives up after this long without progress, and after this long in all.
const FLUSH_IDLE_NS: u64 = 100_000_000;
const FLUSH_TOTAL_NS: u64 = 3_000_000_000;

const RUNNING: u32 = 0;
const ASLEEP: u32 = 1;

/// The futex on which the drainer sleeps.
static NAP: AtomicU32 = AtomicU32::new(RUNNING);
/// Which flush was asked for: counts up.
static FLUSH_ASKED: AtomicU32 = AtomicU32::new(0);
/// Whether the last flush is the process's goodbye.
static GOODBYE: AtomicU32 = AtomicU32::new(0);
/// Counts up whenever a helper thread got something done. The futex on which a flush waits.
static PROGRESS: AtomicU32 = AtomicU32::new(0);
/// Which flush has been written.
static FLUSH_DONE: AtomicU32 = AtomicU32::new(0);

/// Starts both helper threads.
pub(crate) fn start() -> bool {
    super::start_thread(c"gpumem-drain", main, null_mut())
}

/// A forked child has no helper threads.
pub(crate) fn forget() {
    for word in [&NAP, &FLUSH_ASKED, &GOODBYE, &PROGRESS, &FLUSH_DONE] {
        word.store(0, Ordering::Relaxed);
    }
}

fn futex_wait(word: &AtomicU32, expected: u32, nanoseconds: i64) {
    let timeout = libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    };
    // SAFETY: the futex word and the timeout outlive the call.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            &raw const timeout,
            null::<u32>(),
            0,
        )
    };
}

fn futex_wake(word: &AtomicU32) {
    // SAFETY: the futex word is static.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        )
    };
}

/// Wakes the drainer if it sleeps. Called from hooks; a system call only when it does sleep.
pub(crate) fn wake_if_asleep() {
    if NAP.load(Ordering::Relaxed) == ASLEEP && NAP.swap(RUNNING, Ordering::SeqCst) == ASLEEP {
        futex_wake(&NAP);
    }
}

/// A helper thread got something done.
pub(crate) fn progress() {
    PROGRESS.fetch_add(1, Ordering::Release);
    futex_wake(&PROGRESS);
}

/// The writer has written all up to this flush.
pub(crate) fn flushed(flush: u32) {
    FLUSH_DONE.store(flush, Ordering::Release);
    progress();
}

/// Has all that is recorded so far written, and waits for it as long as there is progress, at most a few seconds: for the
/// process's end, not for hooks.
pub(crate) fn flush(goodbye: bool) {
    if goodbye {
        GOODBYE.store(1, Ordering::Relaxed);
    }
    let flush = FLUSH_ASKED.fetch_add(1, Ordering::SeqCst) + 1;
    wake_if_asleep();
    let now = || clock::anchor().monotonic_ns;
    let start = now();
    let mut last = (PROGRESS.load(Ordering::Acquire), start);
    while FLUSH_DONE.load(Ordering::Acquire) < flush {
        let at = now();
        if at.wrapping_sub(last.1) > FLUSH_IDLE_NS || at.wrapping_sub(start) > FLUSH_TOTAL_NS {
            return;
        }
        futex_wait(&PROGRESS, last.0, 10_000_000);
        let progress = PROGRESS.load(Ordering::Acquire);
        if progress != last.0 {
            last = (progress, now());
        }
    }
}

extern "C" fn main(_: *mut c_void) -> *mut c_void {
    let run = || {
        let (sender, receiver) = bounded(CHANNEL);
        if writer::start(receiver) {
            Drainer::new(sender).run();
        } else {
            fuse::blow(Reason::NoThread);
        }
    };
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        fuse::blow(Reason::Panic);
    }
    null_mut()
}

struct Drainer {
    sender: Sender<Batch>,
    definitions: stack::arena::Reader,
    python: PythonStatus,
    flushed: u32,
    fuse_told: bool,
    reaped_ns: u64,
}

impl Drainer {
    fn new(sender: Sender<Batch>) -> Self {
        let definitions = stack::arena::Reader::default();
        Self {
            sender,
            definitions,
            python: PythonStatus::Absent,
            flushed: 0,
            fuse_told: false,
            reaped_ns: 0,
        }
    }

    fn run(&mut self) {
        while let Some(rings) = Rings::get() {
            self.reap(rings);
            let flush = FLUSH_ASKED.load(Ordering::SeqCst);
            if self.sender.is_full() {
                futex_wait(&NAP, RUNNING, BACK_OFF_NS);
                continue;
            }
            let batch = self.next_batch(rings);
            let busy = !batch.events.is_empty() || !batch.definitions.is_empty();
            if busy && !self.send(batch) {
                return;
            }
            if busy {
                progress();
                continue;
            }
            if flush != self.flushed {
                // All that was recorded before the flush was asked for is in the channel by now.
                self.flushed = flush;
                let goodbye = GOODBYE.load(Ordering::Relaxed) != 0;
                let mut batch = Batch {
                    flush: Some(flush),
                    goodbye,
                    lost: lost(),
                    ..Batch::default()
                };
                if goodbye {
                    note_stacks(&mut batch.definitions);
                }
                if !self.send(batch) {
                    return;
                }
                continue;
            }
            nap(NAP_NS, self.flushed);
        }
    }

    /// Sends without blocking: there is room, since this is the only sender and it looked before.
    fn send(&self, batch: Batch) -> bool {
        !matches!(
            self.sender.try_send(batch),
            Err(TrySendError::Disconnected(_))
        )
    }

    fn next_batch(&mut self, rings: &Rings) -> Batch {
        let mut batch = Batch {
            anchor: clock::anchor(),
            ..Batch::default()
        };
        let limit = rings.complete_below();
        // Numbers are dense, so a bound on the numbers bounds the events of a batch.
        let fit = rings
            .least_waiting()
            .map_or(limit, |least| least.saturating_add(BATCH_EVENTS));
        rings.drain(limit.min(fit), &mut batch.events);
        // After the events: each id was published before the event that uses it, so its definition is here.
        self.definitions.read(&mut batch.definitions, usize::MAX);
        self.note_changes(&mut batch.definitions);
        batch.lost = lost();
        batch
    }

    fn note_changes(&mut self, out: &mut Vec<u8>) {
        let python = stack::python_status();
        if python != self.python {
            self.python = python;
            let _ = Definition::<String>::Python(python).append_to(out);
        }
        if let Some(reason) = fuse::reason().filter(|_| !self.fuse_told) {
            self.fuse_told = true;
            let _ = Definition::<String>::Notice {
                text: reason.sentence().to_owned(),
            }
            .append_to(out);
        }
    }

    /// Takes the rings of threads that are gone back, now and then.
    fn reap(&mut self, rings: &Rings) {
        let now = clock::anchor().monotonic_ns;
        if now.wrapping_sub(self.reaped_ns) < REAP_EVERY_NS && !rings_are_wanted() {
            return;
        }
        self.reaped_ns = now;
        // SAFETY: system calls on our own process; signal 0 only asks whether the thread is there.
        let is_alive = |tid: u32| unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, 0) == 0
                || *libc::__errno_location() != libc::ESRCH
        };
        rings.reap(is_alive);
    }
}

/// Tells of stacks that could not be kept, if there were any.
fn note_stacks(out: &mut Vec<u8>) {
    let counters = stack::counters();
    if counters.overflows + counters.unsupported > 0 {
        let text = format!(
            "of {} stacks, {} did not fit the table of stacks, {} were not the thread's own (a coroutine's) and {} end in \
             code without unwind information ({} unwind rules)",
            counters.captures,
            counters.overflows,
            counters.unsupported,
            counters.lost,
            counters.rule_misses
        );
        let _ = Definition::<String>::Notice { text }.append_to(out);
    }
}

fn lost() -> Lost {
    Lost {
        others: LOST.others.load(Ordering::Relaxed),
        urgent: LOST.urgent.load(Ordering::Relaxed),
    }
}

/// Sleeps until woken or for so long, unless a flush was asked for meanwhile.
fn nap(nanoseconds: i64, flushed: u32) {
    NAP.store(ASLEEP, Ordering::SeqCst);
    if FLUSH_ASKED.load(Ordering::SeqCst) == flushed {
        futex_wait(&NAP, ASLEEP, nanoseconds);
    }
    NAP.store(RUNNING, Ordering::SeqCst);
}
