//! What a thread needs to capture stacks: its bounds, its memory of the last walk, its caches, its working memory.
//!
//! Some 200 KiB, too much for thread-local storage (which comes out of every thread's stack), so a thread has a pointer to a
//! mapping of its own. When the thread ends the mapping is kept for the next one. The end is told by a POSIX key, since a
//! thread-local with a destructor takes the loader's lock to register it, and a hook may run under that lock.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use super::intern::ThreadCache;
use super::merge::Merged;
use super::module::{Desk, ModuleCache};
use super::native::Bounds;
use super::native::outer::OuterCache;
use super::native::replay::Replay;
use super::python::LineCache;
use super::region;
use crate::tls;

/// One thread's memory. All zeros is valid: empty bounds, empty caches.
pub(crate) struct Scratch {
    /// Whether this is the process's first thread.
    pub(crate) main: bool,
    pub(crate) bounds: Bounds,
    pub(crate) replay: Replay,
    pub(crate) outer: OuterCache,
    pub(crate) ids: ThreadCache,
    pub(crate) modules: ModuleCache,
    pub(crate) lines: LineCache,
    pub(crate) merged: Merged,
    pub(crate) desk: Desk,
}

/// A mapping: a scratch, and what other threads may see of it.
pub(crate) struct Block {
    /// Written by the owner alone.
    captures: AtomicU64,
    in_use: AtomicBool,
    scratch: UnsafeCell<Scratch>,
}

/// Every block that was ever made, up to a bound; one beyond it is unmapped when its thread ends.
static ALL: [AtomicPtr<Block>; 1024] = [const { AtomicPtr::new(core::ptr::null_mut()) }; 1024];

/// The blocks in [`ALL`]. They are never unmapped.
fn registered() -> impl Iterator<Item = &'static Block> {
    // SAFETY: null, or a block that stays mapped for ever. Acquire pairs with the release in `create`.
    ALL.iter()
        .filter_map(|slot| unsafe { slot.load(Ordering::Acquire).as_ref() })
}

/// This thread's block. `None`: no memory.
#[inline(always)]
pub(crate) fn mine() -> Option<NonNull<Block>> {
    NonNull::new(tls::thread().stacks.get().cast()).or_else(acquire)
}

/// Whether this is the process's first thread, as far as it ever captured a stack.
#[inline(always)]
pub(crate) fn is_main_thread() -> bool {
    let block = tls::thread().stacks.get().cast::<Block>();
    // SAFETY: null, or this thread's block, whose flag this thread alone writes.
    !block.is_null() && unsafe { (&raw const (*(*block).scratch.get()).main).read() }
}

impl Block {
    /// The scratch, to be used by its own thread alone and not twice at a time.
    #[inline(always)]
    pub(crate) fn scratch(&self) -> *mut Scratch {
        self.scratch.get()
    }

    /// Counts a capture. No read-modify-write: the owner alone writes.
    #[inline(always)]
    pub(crate) fn count(&self) {
        let count = self.captures.load(Ordering::Relaxed);
        self.captures.store(count + 1, Ordering::Relaxed);
    }
}

/// Captures of all threads so far (but of those beyond the first 1,024 at a time).
pub(crate) fn captures() -> u64 {
    registered()
        .map(|block| block.captures.load(Ordering::Relaxed))
        .sum()
}

#[cold]
#[inline(never)]
fn acquire() -> Option<NonNull<Block>> {
    let block = reuse().or_else(create)?;
    // SAFETY: `in_use` was won by this thread, so nobody else touches the scratch until the thread's end.
    let scratch = unsafe { &mut *block.as_ref().scratch() };
    // SAFETY: plain calls.
    scratch.main = unsafe { libc::gettid() == libc::getpid() };
    scratch.bounds = Bounds::of_this_thread();
    scratch.replay.clear();
    scratch.outer.clear();
    tls::thread().stacks.set(block.as_ptr().cast());
    release_at_thread_end(block);
    Some(block)
}

fn reuse() -> Option<NonNull<Block>> {
    // Acquire pairs with the release at the end of the thread that had it: its writes come before ours.
    let free = |block: &&Block| {
        block
            .in_use
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    };
    registered().find(free).map(NonNull::from)
}

fn create() -> Option<NonNull<Block>> {
    let block = NonNull::new(region::map(size_of::<Block>())?.cast::<Block>())?;
    // SAFETY: fresh, zeroed, page-aligned and seen by this thread alone; all zeros is a valid `Block`.
    unsafe { block.as_ref() }
        .in_use
        .store(true, Ordering::Relaxed);
    let null = core::ptr::null_mut();
    // Release: whoever finds the pointer sees the block in use.
    let put = |slot: &&AtomicPtr<Block>| {
        slot.compare_exchange(null, block.as_ptr(), Ordering::Release, Ordering::Relaxed)
            .is_ok()
    };
    ALL.iter().find(put);
    Some(block)
}

/// Sets this thread's value of the key, so that the C library calls [`thread_ends`]. Where there are no keys left, the
/// block stays with its thread for ever: some address space, and what of it was touched.
fn release_at_thread_end(block: NonNull<Block>) {
    /// The key plus one; 0: not made yet.
    static KEY: AtomicU32 = AtomicU32::new(0);
    let mut key = KEY.load(Ordering::Relaxed);
    if key == 0 {
        let mut fresh = 0;
        // SAFETY: a plain call; the destructor is a function of this library, which is never unloaded.
        if unsafe { libc::pthread_key_create(&mut fresh, Some(thread_ends)) } != 0 {
            return;
        }
        // Relaxed: the number is all there is to see.
        match KEY.compare_exchange(0, fresh + 1, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => key = fresh + 1,
            Err(other) => {
                // SAFETY: made above and not used.
                unsafe { libc::pthread_key_delete(fresh) };
                key = other;
            }
        }
    }
    // SAFETY: `key` is a key of ours.
    unsafe { libc::pthread_setspecific(key - 1, block.as_ptr().cast::<c_void>()) };
}

/// A hook that runs later in this thread's end takes a block again and sets the key again; the C library calls us again.
unsafe extern "C" fn thread_ends(block: *mut c_void) {
    tls::thread().stacks.set(core::ptr::null_mut());
    let block = block.cast::<Block>();
    match registered().find(|other| core::ptr::eq(*other, block)) {
        // Release: our writes come before those of the next owner.
        Some(block) => block.in_use.store(false, Ordering::Release),
        None => region::unmap(block.cast(), size_of::<Block>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_locals_need_no_destructor() {
        assert!(!core::mem::needs_drop::<tls::Thread>());
        assert!(!core::mem::needs_drop::<Block>());
    }

    #[test]
    fn a_scratch_outlives_its_thread_and_serves_the_next() {
        let one = || {
            std::thread::spawn(|| mine().unwrap().as_ptr() as usize)
                .join()
                .unwrap()
        };
        let first = one();
        // Other tests' threads may take it in between, but it stays registered.
        assert!(
            ALL.iter()
                .any(|slot| slot.load(Ordering::Relaxed) as usize == first)
        );
        assert_eq!(mine().unwrap(), mine().unwrap());
        assert_ne!(mine().unwrap().as_ptr() as usize, 0);
    }
}
