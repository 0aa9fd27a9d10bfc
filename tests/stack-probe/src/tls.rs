//! What the stack capture keeps for each thread.

use core::cell::Cell;
use core::ffi::c_void;

/// A thread's own data.
pub(crate) struct Thread {
    /// As in the shim.
    pub(crate) stacks: Cell<*mut c_void>,
}

thread_local! {
    static THREAD: Thread = const { Thread { stacks: Cell::new(core::ptr::null_mut()) } };
}

/// The calling thread's data.
pub(crate) fn thread() -> &'static Thread {
    // SAFETY: the value has no destructor, so it is there until the thread is gone; being neither `Send` nor `Sync` the
    // reference stays in its thread.
    THREAD.with(|thread| unsafe { &*core::ptr::from_ref(thread) })
}
