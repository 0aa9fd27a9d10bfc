//! This process: when it wakes, what it becomes after a fork, and how it ends.
//!
//! Until the first context or allocation the shim is inert: no thread, no socket, no file, no memory. Then it wakes, once.
//! A forked child starts over as a process of its own, which it learns from a page that the kernel wipes on fork.

use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, Ordering};

use gpumem_wire::{ApiId, DeviceOrdinal, Flags, Kind, StackId};

use crate::config;
use crate::fuse::{self, Reason};
use crate::guard::Watch;
use crate::intercept::context;
use crate::record::ring::{LOST, Rings};
use crate::record::{self, Draft, clock, order, thread};
use crate::ship::{drainer, writer};

const ASLEEP: u8 = 0;
const WAKING: u8 = 1;
const AWAKE: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(ASLEEP);
/// How many processes this memory has been: 1, and one more after each fork on the way to this one.
static GENERATION: AtomicU32 = AtomicU32::new(1);
/// A page that reads 1 in the process that wrote it and 0 in a forked child.
static FORK_PAGE: AtomicPtr<AtomicU8> = AtomicPtr::new(null_mut());
/// Whether the exit handler is registered; a child inherits it.
static HANDLERS: AtomicU8 = AtomicU8::new(0);
/// Whether the live set at exit was marked. See [`Kind::Finalising`] and [`Kind::ExitHandler`].
static FINALISING: AtomicU8 = AtomicU8::new(0);

/// How long a hook waits for another thread that is waking the process.
const WAKE_PATIENCE: u32 = 2_000;

/// Whether the process records.
#[inline(always)]
pub(crate) fn awake() -> bool {
    STATE.load(Ordering::Acquire) == AWAKE
}

/// See [`GENERATION`]. Relaxed: it changes only where a process has a single thread.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Starts over in a forked child. Costs a load where nothing was forked.
#[inline(always)]
pub(crate) fn notice_fork() {
    let page = FORK_PAGE.load(Ordering::Relaxed);
    // SAFETY: once set, the page stays mapped.
    if !page.is_null() && unsafe { &*page }.load(Ordering::Relaxed) == 0 {
        become_new_process();
    }
}

#[cold]
fn become_new_process() {
    // Only stores: a child of a program with threads may do no more.
    Rings::forget();
    order::restart();
    thread::restart();
    drainer::forget();
    writer::forget();
    context::forget();
    FINALISING.store(0, Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    STATE.store(ASLEEP, Ordering::Relaxed);
    let page = FORK_PAGE.load(Ordering::Relaxed);
    if !page.is_null() {
        // SAFETY: the page stays mapped, and is ours to write.
        unsafe { &*page }.store(1, Ordering::Relaxed);
    }
}

/// Wakes the process if it sleeps. True if it records afterwards.
#[inline(always)]
pub(crate) fn wake() -> bool {
    awake() || wake_slowly()
}

#[cold]
fn wake_slowly() -> bool {
    if fuse::is_blown() {
        return false;
    }
    if STATE
        .compare_exchange(ASLEEP, WAKING, Ordering::Acquire, Ordering::Acquire)
        .is_err()
    {
        // Another thread is at it. It does a few system calls; more patience than that would be a wait without a bound.
        for _ in 0..WAKE_PATIENCE {
            if awake() {
                return true;
            }
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
        }
        if !awake() {
            LOST.count(false);
        }
        return awake();
    }
    register_exit_handler();
    clock::choose();
    crate::stack::set_full_native(config::full_native());
    if !make_fork_page() || !Rings::create() {
        fuse::blow(Reason::NoMemory);
        return false;
    }
    if !drainer::start() {
        fuse::blow(Reason::NoThread);
        return false;
    }
    STATE.store(AWAKE, Ordering::Release);
    true
}

fn make_fork_page() -> bool {
    if !FORK_PAGE.load(Ordering::Relaxed).is_null() {
        return true;
    }
    // SAFETY: a fresh anonymous page; zeroes are a valid AtomicU8.
    unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(
            null_mut(),
            4096,
            protection,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if page == libc::MAP_FAILED || libc::madvise(page, 4096, libc::MADV_WIPEONFORK) != 0 {
            return false;
        }
        let page = page.cast::<AtomicU8>();
        (*page).store(1, Ordering::Relaxed);
        FORK_PAGE.store(page, Ordering::Relaxed);
    }
    true
}

unsafe extern "C" {
    fn __cxa_atexit(
        function: unsafe extern "C" fn(*mut libc::c_void),
        argument: *mut libc::c_void,
        object: *mut libc::c_void,
    ) -> libc::c_int;
    fn __register_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
        object: *mut libc::c_void,
    ) -> libc::c_int;
}

fn register_exit_handler() {
    // One thread at a time wakes the process. A child that is forked between the two lines registers once more, and its handler
    // then runs twice, which changes nothing.
    if HANDLERS.load(Ordering::Relaxed) != 0 {
        return;
    }
    // SAFETY: the function exists in every glibc that we run on; the handler is ours and this library is never unloaded
    // (it is preloaded). Registered at the first allocation, the exit handler runs before those of the CUDA libraries, which
    // were loaded earlier: what lives then is what the program left.
    unsafe { __cxa_atexit(at_exit, null_mut(), null_mut()) };
    HANDLERS.store(1, Ordering::Relaxed);
}

/// Before the program runs, so that no fork can come between a process that begins to record and its handler. It costs a child
/// that never records a few stores.
unsafe extern "C" fn at_load() {
    // SAFETY: the function exists in every glibc that we run on; the handler is ours, and this library is never unloaded.
    unsafe { __register_atfork(None, None, Some(in_child), null_mut()) };
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: unsafe extern "C" fn() = at_load;

/// A child must not keep its parent's connection open: the collector takes its end for the parent's. Nor may it go on where the
/// parent was; here it has one thread for certain. (After a raw clone this does not run, and the page tells.)
unsafe extern "C" fn in_child() {
    writer::close_in_child();
    become_new_process();
}

unsafe extern "C" fn at_exit(_: *mut libc::c_void) {
    if let Some(watch) = Watch::enter() {
        watch.own(|| {
            if awake() {
                mark_end(&watch, Kind::ExitHandler);
                drainer::flush(false);
            }
        });
    }
}

/// Runs after the program's own exit handlers and most libraries' destructors.
unsafe extern "C" fn at_unload() {
    if let Some(watch) = Watch::enter() {
        watch.own(|| {
            if awake() {
                drainer::flush(true);
            }
        });
    }
}

#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_UNLOAD: unsafe extern "C" fn() = at_unload;

/// Marks that the interpreter finalises, at the first event at which it does.
#[inline(always)]
pub(crate) fn notice_finalising(watch: &Watch) {
    if FINALISING.load(Ordering::Relaxed) == 0 && crate::stack::python_is_finalising() {
        mark_end(watch, Kind::Finalising);
    }
}

fn mark_end(watch: &Watch, kind: Kind) {
    if kind == Kind::Finalising && FINALISING.swap(1, Ordering::Relaxed) != 0 {
        return;
    }
    record::event(
        watch,
        Draft {
            kind,
            api: ApiId(0),
            device: DeviceOrdinal::UNKNOWN,
            stack: StackId::NONE,
            flags: Flags::default(),
            words: [0; 4],
        },
    );
}
