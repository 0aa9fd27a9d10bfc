//! From the rings to a reader: two helper threads that the program never waits for.
//!
//! The [`drainer`] brings events into order and hands batches over; the [`writer`] encodes them and writes to the
//! collector's [`socket`], or to a [`spool`] file where none listens. Between them is a bounded channel. When the writer
//! falls behind, events stay in the rings, and when those are full the hooks give up allocations and count them.

pub(crate) mod drainer;
pub(crate) mod identity;
pub(crate) mod socket;
pub(crate) mod spool;
pub(crate) mod writer;

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;

/// Starts a helper thread: detached, all signals blocked so that none of the program's is ever delivered to it. Not
/// `std::thread`, which registers destructors for the calling thread.
fn start_thread(
    name: &CStr,
    main: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> bool {
    // SAFETY: plain pthread calls on structures of ours; `main` takes what its caller gives as `argument`.
    unsafe {
        let mut all: libc::sigset_t = core::mem::zeroed();
        let mut before: libc::sigset_t = core::mem::zeroed();
        let mut attributes: libc::pthread_attr_t = core::mem::zeroed();
        let mut thread: libc::pthread_t = 0;
        libc::sigfillset(&raw mut all);
        if libc::pthread_attr_init(&raw mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&raw mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&raw mut attributes, 1 << 20);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        let status = libc::pthread_create(&raw mut thread, &raw const attributes, main, argument);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut());
        libc::pthread_attr_destroy(&raw mut attributes);
        if status == 0 {
            libc::pthread_setname_np(thread, name.as_ptr());
        }
        status == 0
    }
}
