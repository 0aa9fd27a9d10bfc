//! What this library keeps for each thread: one cache line, in the initial-exec model.
//!
//! Rust's own `thread_local!` is compiled to the general-dynamic model in a shared library, a function call for each access.
//! A preloaded library is there from the program's start, so its thread-local block lies at a fixed distance from the thread
//! pointer, and one instruction finds it. The block is zeroes at first, has no destructor, and is small because the loader
//! carves it from each thread's stack.

use core::cell::Cell;
use core::ffi::c_void;

use crate::record::ring::Ring;

/// A thread's own data.
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// The stack pointer of the hook that the thread is inside of, 0 outside.
    pub(crate) inside: Cell<usize>,
    /// The thread's ring, null before its first event.
    pub(crate) ring: Cell<*const Ring>,
    /// The process generation in which the ring was taken (a forked child has another).
    pub(crate) generation: Cell<u32>,
    /// Which thread this is, see [`gpumem_wire::ThreadId`].
    pub(crate) number: Cell<u32>,
    /// What stack capture keeps for the thread.
    pub(crate) stacks: Cell<*mut c_void>,
    reserved: [Cell<usize>; 3],
}

const _: () = assert!(core::mem::size_of::<Thread>() == 64);

core::arch::global_asm!(
    ".pushsection .tbss.gpumem_thread, \"awT\", @nobits",
    ".balign 64",
    ".globl gpumem_thread",
    ".hidden gpumem_thread",
    ".type gpumem_thread, @object",
    ".size gpumem_thread, 64",
    "gpumem_thread:",
    ".zero 64",
    ".popsection",
);

/// The calling thread's data.
#[inline(always)]
pub(crate) fn thread() -> &'static Thread {
    let address: *const Thread;
    // SAFETY: the symbol is defined above, 64 zeroed bytes for each thread, which is a valid `Thread`. The reference does not
    // leave its thread (`Cell` is not `Sync`) and is only used while the thread runs.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov {0}, qword ptr [rip + gpumem_thread@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) address,
            options(pure, readonly, nostack)
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mrs {0}, tpidr_el0",
            "adrp {1}, :gottprel:gpumem_thread",
            "ldr {1}, [{1}, :gottprel_lo12:gpumem_thread]",
            "add {0}, {0}, {1}",
            out(reg) address,
            out(reg) _,
            options(pure, readonly, nostack)
        );
        &*address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_own_and_it_starts_as_zero() {
        thread().number.set(7);
        let other =
            std::thread::spawn(|| (thread().number.get(), thread() as *const Thread as usize))
                .join()
                .unwrap();
        assert_eq!(other.0, 0);
        assert_ne!(other.1, thread() as *const Thread as usize);
        assert_eq!(thread().number.get(), 7);
        thread().number.set(0);
    }
}
