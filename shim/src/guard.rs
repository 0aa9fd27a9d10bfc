//! The frame around every hook: who may record, and what must not be seen of it.
//!
//! A hook enters [`Watch`] before the real call and leaves it after. While it is inside, further hooks on the same thread
//! pass through, so that what the driver calls within itself is not counted twice. `errno` is as the real call left it, and
//! a panic of ours blows the fuse instead of reaching the program.

use core::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::fuse::{self, Reason};
use crate::{config, process, stack, tls};

/// Proof that this thread is inside one hook of ours and may record.
pub(crate) struct Watch {
    /// A watch belongs to its thread.
    _thread: PhantomData<*const ()>,
}

/// Keeps `errno` as it was.
struct KeepErrno(i32);

impl KeepErrno {
    #[inline(always)]
    fn new() -> Self {
        // SAFETY: glibc's errno location is valid for the calling thread at any time.
        Self(unsafe { *libc::__errno_location() })
    }
}

impl Drop for KeepErrno {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[inline(always)]
fn stack_pointer() -> usize {
    let here = 0u8;
    (&raw const here) as usize
}

impl Watch {
    /// Enters, unless the fuse is blown, recording is off, or this thread is inside a hook already.
    #[inline(always)]
    pub(crate) fn enter() -> Option<Self> {
        if fuse::is_blown() || config::mode() == config::Mode::Off {
            return None;
        }
        let here = stack_pointer();
        let inside = &tls::thread().inside;
        // Stacks grow down: a live outer hook has a higher stack pointer. One that was left by longjmp may have it too.
        if inside.get() > here && stack::led_here_from(inside.get() as u64) {
            return None;
        }
        inside.set(here);
        Some(Self {
            _thread: PhantomData,
        })
    }

    /// Runs our own code before or after the real call. Gives `None` if it panicked; then the fuse is blown.
    #[inline(always)]
    pub(crate) fn own<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let _errno = KeepErrno::new();
        process::notice_fork();
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(value) => Some(value),
            Err(payload) => {
                // Dropping a payload could panic again.
                core::mem::forget(payload);
                fuse::blow(Reason::Panic);
                None
            }
        }
    }
}

impl Drop for Watch {
    #[inline(always)]
    fn drop(&mut self) {
        tls::thread().inside.set(0);
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::{c_int, c_void};

    use super::*;

    /// Calls `bsearch`, code of another library, and enters in its callback.
    #[inline(never)]
    fn enters_behind_others() -> bool {
        extern "C" fn compare(entered: *const c_void, _: *const c_void) -> c_int {
            // SAFETY: the key that is passed below.
            unsafe { *entered.cast_mut().cast::<bool>() = Watch::enter().is_some() };
            0
        }
        let mut entered = false;
        // SAFETY: one element, which is the key, and a comparison that takes both for equal.
        unsafe {
            let key: *const c_void = (&raw mut entered).cast();
            libc::bsearch(key, key, 1, 1, Some(compare));
        }
        entered
    }

    #[test]
    fn a_hook_inside_a_hook_passes_through() {
        let outer = Watch::enter();
        assert!(outer.is_some());
        assert!(!enters_behind_others());
        drop(outer);
        assert!(enters_behind_others());
    }

    #[test]
    fn errno_is_kept() {
        let watch = Watch::enter().unwrap();
        // SAFETY: this thread's errno.
        unsafe { *libc::__errno_location() = 42 };
        // SAFETY: this thread's errno.
        watch.own(|| unsafe { *libc::__errno_location() = 7 });
        // SAFETY: this thread's errno.
        assert_eq!(unsafe { *libc::__errno_location() }, 42);
    }
}
