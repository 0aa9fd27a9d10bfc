//! `dlclose`: after it, an address may mean other code than before.

use core::ffi::{c_int, c_void};

use crate::{real, stack};

/// The export of `dlclose`: makes the real call, then lets stacks forget what they learned about addresses.
///
/// # Safety
/// As libc's.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub(crate) unsafe extern "C-unwind" fn dlclose(handle: *mut c_void) -> c_int {
    let Some(real) = real::dlclose() else {
        return -1;
    };
    real::pin_driver();
    real::pin_python();
    // SAFETY: the program's own handle.
    let status = unsafe { real(handle) };
    stack::bump_epoch();
    status
}
