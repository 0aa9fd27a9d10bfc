//! How the interpreter's memory is read: as it lies there, or through the kernel.
//!
//! Nobody changes a thread's chain of frames while the thread is inside a hook, with one exception: the end of the
//! interpreter. The thread that ends it frees the states and frames of all others, and these may be anywhere, but for one
//! place: a thread that holds the GIL keeps it from beginning. So a thread that does not hold it, and is not the main one
//! (which is busy here, and is the one that ends the interpreter), reads through the kernel, which answers with an error
//! instead of a fault; what was read counts only if the end had not begun by then.
//!
//! The thread's state itself is read as it lies there, which spares threads without frames (those of PyTorch's backward pass)
//! a system call each time: it is a small block of the C library's heap, which stays mapped when it is freed.

use core::ffi::c_void;

use crate::stack::native::Bounds;

/// Reads memory of the interpreter.
pub(crate) trait Memory {
    /// The value at `address`. `None`: nothing is mapped there.
    ///
    /// # Safety
    /// `address` is a value of type `T` in the interpreter's memory, or was until the interpreter's end began: then
    /// only where [`Memory`] is a [`Window`] that is open.
    unsafe fn read<T: Copy>(&mut self, address: u64) -> Option<T>;
}

/// The memory as it lies there.
pub(crate) struct Direct;

impl Memory for Direct {
    #[inline(always)]
    unsafe fn read<T: Copy>(&mut self, address: u64) -> Option<T> {
        // SAFETY: by the contract of the trait.
        Some(unsafe { super::read(address) })
    }
}

const PAGE: u64 = 4096;
/// Bytes of a thread's state up to the end of what is read of it, at most: `root_cframe` ends it in 3.11.
const STATE: u64 = 360;

/// The page that was read last, if it is open; the memory as it lies there, if not. All zeros is one that is not.
///
/// Frames of a thread lie side by side, so most reads find their page here.
pub(crate) struct Window {
    open: bool,
    /// Of this thread: memory that nobody takes away.
    stack: Bounds,
    /// This thread's state.
    state: u64,
    /// The address of `bytes`, 0 for none.
    page: u64,
    bytes: [u8; PAGE as usize],
}

impl Window {
    /// From now on memory may vanish, but for this thread's stack and state. What was read before is forgotten.
    pub(crate) fn open(&mut self, stack: Bounds, state: u64) {
        self.open = true;
        self.stack = stack;
        self.state = state;
        self.page = 0;
    }

    /// This thread's state, if memory may vanish.
    pub(crate) fn state(&self) -> Option<u64> {
        self.open.then_some(self.state)
    }

    /// From now on memory stays.
    pub(crate) fn close(&mut self) {
        self.open = false;
    }

    /// Whether memory may vanish.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }

    /// The bytes from `address` to the page's end.
    fn at(&mut self, address: u64) -> Option<&[u8]> {
        let page = address & !(PAGE - 1);
        if page == 0 {
            return None;
        }
        if self.page != page {
            self.page = 0;
            if !copy(page, &mut self.bytes) {
                return None;
            }
            self.page = page;
        }
        self.bytes.get((address - page) as usize..)
    }
}

impl Memory for Window {
    #[inline]
    unsafe fn read<T: Copy>(&mut self, address: u64) -> Option<T> {
        let is_own = self.stack.holds_word(address) || address.wrapping_sub(self.state) < STATE;
        if !self.open || is_own {
            // SAFETY: not open: by the contract of the trait. Else a word of this thread's own stack, or of its state.
            return Some(unsafe { super::read(address) });
        }
        let bytes = self.at(address)?.get(..size_of::<T>())?;
        // SAFETY: `bytes` holds a `T`, which is a number, at any alignment.
        Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }
}

/// Whether a whole page could be read.
fn copy(page: u64, bytes: &mut [u8; PAGE as usize]) -> bool {
    let local = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    let remote = libc::iovec {
        iov_base: page as *mut c_void,
        iov_len: bytes.len(),
    };
    // SAFETY: one local range, which is ours to write; whatever the other one is, the kernel answers with an error at
    // worst. It is this process's own memory, so no right beyond its own is asked for.
    let read = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    read == bytes.len() as isize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The address of no state.
    const NOWHERE: u64 = 1 << 62;

    fn window() -> Box<Window> {
        // SAFETY: all zeros is a window that is not open.
        let mut window: Box<Window> = unsafe { Box::new_zeroed().assume_init() };
        window.open(Bounds::default(), NOWHERE);
        window
    }

    #[test]
    fn memory_that_is_gone_is_no_fault() {
        // SAFETY: a fresh mapping of two pages, the second of which is unmapped again.
        let first = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let start = libc::mmap(core::ptr::null_mut(), 8192, rights, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            libc::munmap(start.byte_add(4096), 4096);
            start as u64
        };
        let mut window = window();
        // SAFETY: an open window takes any address.
        unsafe {
            ((first + 4088) as *mut u64).write(7);
            assert_eq!(window.read::<u64>(first + 4088), Some(7));
            // It has the page as it was.
            ((first + 4088) as *mut u64).write(8);
            assert_eq!(window.read::<u64>(first + 4088), Some(7));
            assert_eq!(window.read::<u8>(first + 4096), None);
            assert_eq!(window.read::<u64>(first + 4092), None);
            assert_eq!(window.read::<u64>(8), None);
            assert_eq!(window.read::<u64>(u64::MAX - 7), None);
            // A page that could not be read does not leave the former one's bytes behind.
            assert_eq!(window.read::<u64>(first + 4088), Some(8));
            libc::munmap(first as *mut c_void, 4096);
            window.open(Bounds::default(), NOWHERE);
            assert_eq!(window.read::<u64>(first + 4088), None);
        }
    }
}
