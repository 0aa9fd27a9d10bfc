//! Whether the interpreter is being taken down.

use core::ffi::c_int;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The address of `_Py_IsFinalizing`, 0 until an interpreter was seen.
static IS_FINALISING: AtomicUsize = AtomicUsize::new(0);

pub(super) fn set(address: u64) {
    IS_FINALISING.store(address as usize, Ordering::Relaxed);
}

/// True while the interpreter is being taken down: it then frees the thread states of its daemon threads under them.
#[inline(always)]
pub(crate) fn python_is_finalising() -> bool {
    // Relaxed: code of a mapped object, which is pinned before any library is closed.
    let address = IS_FINALISING.load(Ordering::Relaxed);
    if address == 0 {
        return false;
    }
    // SAFETY: `int _Py_IsFinalizing(void)` reads one variable, with or without the GIL.
    let is_finalising = unsafe { core::mem::transmute::<usize, extern "C" fn() -> c_int>(address) };
    is_finalising() != 0
}
