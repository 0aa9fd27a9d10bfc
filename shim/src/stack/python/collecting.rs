//! Whether this thread runs Python's cycle collector.

use core::sync::atomic::{AtomicBool, Ordering};

use super::walk::{holds_the_gil, thread_state};
use super::{layout, python_is_finalising, read};

/// The flag held something that it never does: the layout is another one, and nothing is said any more.
static MISREAD: AtomicBool = AtomicBool::new(false);

/// True within a collection of this thread's: what is freed then was kept by cycles. Not while the interpreter is being taken
/// down.
pub(crate) fn python_is_collecting() -> bool {
    let Some(known) = layout() else {
        return false;
    };
    if MISREAD.load(Ordering::Relaxed) || python_is_finalising() {
        return false;
    }
    let state = thread_state();
    if state == 0 || !holds_the_gil(state) {
        return false;
    }
    // SAFETY: the thread holds the GIL, so that its state and its interpreter are alive.
    let collecting: u32 = unsafe {
        let interpreter: u64 = read(state + layout::THREAD_INTERPRETER);
        read(interpreter + known.interpreter_collecting)
    };
    if collecting > 1 {
        MISREAD.store(true, Ordering::Relaxed);
    }
    collecting == 1
}
