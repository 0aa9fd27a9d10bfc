//! Zeroed memory from the kernel, reserved now and paid for page by page as it is touched.

use core::ptr;

/// Maps `size_bytes` of zeros. `None`: the kernel refused. `errno` is the caller's own business: hooks save and restore it.
#[cold]
pub(crate) fn map(size_bytes: usize) -> Option<*mut u8> {
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches no memory that exists.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            size_bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    (start != libc::MAP_FAILED).then_some(start.cast())
}

/// Gives back what [`map`] gave, when another thread was faster to publish its own.
#[cold]
pub(crate) fn unmap(start: *mut u8, size_bytes: usize) {
    // SAFETY: called only with a mapping that `map` made and that no other thread has seen.
    unsafe { libc::munmap(start.cast(), size_bytes) };
}
