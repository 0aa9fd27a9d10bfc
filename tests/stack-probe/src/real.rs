//! What the stack capture asks of the rest of the shim.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

/// The address of a symbol in the process, if there is one.
pub(crate) fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a plain look-up by name.
    NonNull::new(unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) })
}
