//! Numbers, and how a reader knows that none below a bound can still come.
//!
//! Every event takes its number from one counter. Before a thread takes one it publishes, in its ring, the counter's value
//! as a lower bound of what it is about to take, and withdraws the bound after the event lies in the ring. A reader first
//! reads the counter, then all bounds: every number below the least of them is either in a ring already or belongs to an
//! event that was given up. So it never waits for a missing number: a thread may stand still for seconds or die.

use core::sync::atomic::{AtomicU64, Ordering};

use gpumem_wire::Seq;

/// The bound of a thread that is not taking a number.
pub(crate) const IDLE: u64 = u64::MAX;

/// The next number. Starts at 1: 0 means none.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Takes a number under the protection of `bound`.
///
/// The orderings are all sequentially consistent, which is what the argument needs: if the reader's load of the counter comes
/// after this thread's increment in the one order of all such operations, then the reader's later load of the bound comes
/// after the store of it, and so sees the bound or what followed it.
#[inline(always)]
pub(crate) fn take(bound: &AtomicU64) -> Seq {
    bound.store(NEXT.load(Ordering::Relaxed), Ordering::SeqCst);
    Seq(NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Withdraws the bound. Release: a reader that sees it idle also sees the event in the ring.
#[inline(always)]
pub(crate) fn done(bound: &AtomicU64) {
    bound.store(IDLE, Ordering::Release);
}

/// The first number that has not been taken.
pub(crate) fn horizon() -> u64 {
    NEXT.load(Ordering::SeqCst)
}

/// A forked child is a new process and counts anew.
pub(crate) fn restart() {
    NEXT.store(1, Ordering::SeqCst);
}
