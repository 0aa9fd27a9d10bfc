//! The fuse: when anything surprises us, hooks become pass-through and the program goes on as if we were not there.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What blew the fuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Reason {
    /// Our code panicked.
    Panic = 1,
    /// Memory for rings could not be had.
    NoMemory = 2,
    /// A helper thread could not be started.
    NoThread = 3,
}

impl Reason {
    /// One sentence for a person.
    pub(crate) const fn sentence(self) -> &'static str {
        match self {
            Self::Panic => "gpumem stopped recording in this process: its own code failed",
            Self::NoMemory => "gpumem stopped recording in this process: no memory for its buffers",
            Self::NoThread => {
                "gpumem stopped recording in this process: no thread could be started"
            }
        }
    }
}

/// 0 while the fuse is whole. Relaxed is enough: the value guards no other data, and a hook that reads the old one only
/// records one event more.
static BLOWN: AtomicU8 = AtomicU8::new(0);

/// Whether hooks pass through.
#[inline(always)]
pub(crate) fn is_blown() -> bool {
    BLOWN.load(Relaxed) != 0
}

/// Blows the fuse; the first reason stays.
pub(crate) fn blow(reason: Reason) {
    let _ = BLOWN.compare_exchange(0, reason as u8, Relaxed, Relaxed);
}

/// Why it blew.
pub(crate) fn reason() -> Option<Reason> {
    match BLOWN.load(Relaxed) {
        1 => Some(Reason::Panic),
        2 => Some(Reason::NoMemory),
        3 => Some(Reason::NoThread),
        _ => None,
    }
}
