//! Where this thread's stack lies.

use core::ptr;

/// The addresses `[low, high)` of a thread's stack. The kernel grows the main thread's stack towards `low` as it is used;
/// everything between the stack pointer and `high` is always mapped.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bounds {
    /// The lowest address that the stack may ever use.
    pub(crate) low: u64,
    /// The first address above it.
    pub(crate) high: u64,
}

impl Bounds {
    /// Whether `address` can be read as a word of this stack.
    #[inline(always)]
    pub(crate) fn holds_word(&self, address: u64) -> bool {
        address >= self.low && address < self.high && self.high - address >= 8 && address & 7 == 0
    }

    /// Asks the C library. For the main thread that reads `/proc/self/maps`, so it is done once per thread and kept.
    /// Empty bounds, in which no walk starts, if the C library has no answer.
    #[cold]
    pub(crate) fn of_this_thread() -> Self {
        let mut attributes = core::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: the call fills `attributes` for the calling thread, or fails and says so.
        if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
            return Self::default();
        }
        let mut low = ptr::null_mut();
        let mut size = 0usize;
        // SAFETY: `attributes` was filled by the call above and is destroyed once, here.
        let failed = unsafe {
            let failed = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size);
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
            failed
        };
        if failed != 0 {
            return Self::default();
        }
        let low = low as u64;
        Self {
            low,
            high: low.saturating_add(size as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_lies_in_the_bounds_of_its_own_thread_only() {
        let local = 0u64;
        let here = &raw const local as u64;
        assert!(Bounds::of_this_thread().holds_word(here));
        let other = std::thread::spawn(Bounds::of_this_thread).join().unwrap();
        assert!(!other.holds_word(here));
        assert!(other.high > other.low);
    }

    #[test]
    fn a_word_must_fit_and_be_aligned() {
        let bounds = Bounds {
            low: 0x1000,
            high: 0x2000,
        };
        assert!(bounds.holds_word(0x1000) && bounds.holds_word(0x1ff8));
        assert!(
            !bounds.holds_word(0xff8) && !bounds.holds_word(0x2000) && !bounds.holds_word(0x1ffc)
        );
        assert!(!bounds.holds_word(u64::MAX - 7));
    }
}
