//! Whether this thread runs Python's cycle collector.
//!
//! PyTorch gives back the GIL while it destroys a tensor, so a thread without the GIL may still be inside of its own
//! collection; or another thread may be in one. The first thread is believed, and who holds the GIL: nearly all collections
//! are theirs. A free of theirs while another's collection has given back the GIL is taken for a part of it.

use core::sync::atomic::{AtomicBool, Ordering};

use super::walk::{StateMemory, holds_the_gil, thread_state};
use super::{layout, python_is_finalising, read};
use crate::stack::scratch;

/// The flag held something that it never does: the layout is another one, and nothing is said any more.
static MISREAD: AtomicBool = AtomicBool::new(false);

/// True within a collection: what is freed then was kept by cycles. Not while the interpreter is being taken down, and not on
/// a thread without the GIL that is not the first one.
pub(crate) fn python_is_collecting() -> bool {
    let Some(known) = layout() else {
        return false;
    };
    if MISREAD.load(Ordering::Relaxed) || python_is_finalising() {
        return false;
    }
    let state = thread_state();
    if state == 0 || !(scratch::is_main_thread() || holds_the_gil(state)) {
        return false;
    }
    // SAFETY: this thread's state; if it is alive, so is the interpreter that it belongs to.
    let collecting: u32 = unsafe {
        let address = state + layout::THREAD_INTERPRETER;
        let Some(interpreter) = StateMemory::of(state).read(address) else {
            return false;
        };
        read(interpreter + known.interpreter_collecting)
    };
    if collecting > 1 {
        MISREAD.store(true, Ordering::Relaxed);
    }
    collecting == 1
}
