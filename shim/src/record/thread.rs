//! The calling thread's ring and number.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use gpumem_wire::ThreadId;
use gpumem_wire::define::{BorrowedDefinition, Definition};

use crate::record::ring::{Ring, Rings};
use crate::{process, record, tls};

/// The next thread's number. Relaxed: a counter.
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The calling thread's ring; `None` when there are more threads than rings.
#[inline(always)]
pub(crate) fn ring() -> Option<&'static Ring> {
    let thread = tls::thread();
    if thread.ring.get().is_null() || thread.generation.get() != process::generation() {
        return claim(thread);
    }
    // SAFETY: the ring was taken by this thread in this process, and is given back only when the thread is gone.
    Some(unsafe { &*thread.ring.get() })
}

#[cold]
fn claim(thread: &tls::Thread) -> Option<&'static Ring> {
    let number = NEXT.fetch_add(1, Relaxed);
    // SAFETY: a system call without arguments.
    let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    let ring = Rings::get()?.claim(tid, ThreadId(number))?;
    let mut name = [0u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, a C string.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    let name = CStr::from_bytes_until_nul(&name)
        .ok()
        .and_then(|name| name.to_str().ok())
        .unwrap_or("");
    let definition: BorrowedDefinition<'_> = Definition::Thread {
        id: ThreadId(number),
        tid,
        name,
    };
    record::define(&definition);
    thread.ring.set(ring);
    thread.generation.set(process::generation());
    thread.number.set(number);
    Some(ring)
}

/// A forked child counts anew.
pub(crate) fn restart() {
    NEXT.store(1, Relaxed);
}
