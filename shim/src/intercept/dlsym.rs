//! `dlsym` and `dlvsym`: how programs that open the driver themselves get its functions.
//!
//! The exports are naked stubs. Whatever is not a name of CUDA's goes on to the real function by a *jump*: that one judges
//! `RTLD_NEXT` and `RTLD_DEFAULT` by its return address, which must stay the caller's. For a name of CUDA's we look ourselves
//! first; if our function is to take the place of the driver's it is returned, else the stub jumps on all the same, so that
//! the caller's own look-up is the last one and `dlerror` is his.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null_mut};

use super::table;
use crate::guard::Watch;
use crate::{elf, real};

/// What [`route`] gives for "go on to the real function".
const GO_ON: *mut c_void = null_mut();
/// What [`route`] gives for "there is no such function": the stub returns null. The real look-up that found nothing was the
/// last one, so `dlerror` tells of it.
const NOT_THERE: usize = 1;

/// Handles of glibc that stand for a search rather than for a library.
const RTLD_NEXT: *mut c_void = libc::RTLD_NEXT;
const RTLD_DEFAULT: *mut c_void = libc::RTLD_DEFAULT;

macro_rules! stub {
    ($name:ident, $real:path, $resolve:path) => {
        /// The export: see the module.
        ///
        /// # Safety
        /// As libc's function of this name.
        #[cfg(target_arch = "x86_64")]
        #[cfg_attr(not(test), unsafe(no_mangle))]
        #[unsafe(naked)]
        pub(crate) unsafe extern "C" fn $name(handle: *mut c_void, name: *const c_char) -> *mut c_void {
            core::arch::naked_asm!(
                "test rsi, rsi",
                "jz 2f",
                // "c", then "u", and not as one word: an empty name may end where its page does.
                "cmp byte ptr [rsi], 0x63",
                "jne 2f",
                "cmp byte ptr [rsi + 1], 0x75",
                "je 3f",
                "2:",
                "mov rax, qword ptr [rip + {real}]",
                "test rax, rax",
                "jz 4f",
                "jmp rax",
                // A name that may be CUDA's: ask `route`, with the caller's address and all arguments kept.
                "3:",
                "mov rcx, qword ptr [rsp]",
                "push rdi",
                "push rsi",
                "push rdx",
                "mov rdx, rcx",
                "call {route}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jz 2b",
                "cmp rax, 1",
                "jne 5f",
                "xor eax, eax",
                "5:",
                "ret",
                // The first call of the process: find the real function.
                "4:",
                "push rdi",
                "push rsi",
                "push rdx",
                "call {resolve}",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "test rax, rax",
                "jz 5b",
                "jmp rax",
                real = sym $real,
                route = sym route,
                resolve = sym $resolve,
            )
        }
    };
}

stub!(dlsym, real::DLSYM, real::resolve_dlsym);
stub!(dlvsym, real::DLVSYM, real::resolve_dlvsym);

/// Decides on a name that begins with "cu". Gives our function, [`GO_ON`] or [`NOT_THERE`].
unsafe extern "C" fn route(handle: *mut c_void, name: *const c_char, caller: usize) -> *mut c_void {
    // SAFETY: the caller's name, a C string.
    let name = unsafe { CStr::from_ptr(name) };
    // RTLD_NEXT is asked by another interposer, which must get what is behind it and not us again.
    if handle == RTLD_NEXT || table::by_name(name).is_none() {
        return GO_ON;
    }
    // Nothing here records, so the re-entrancy guard is only asked whether we may answer at all.
    let Some(watch) = Watch::enter() else {
        return GO_ON;
    };
    watch.own(|| answer(handle, name, caller)).unwrap_or(GO_ON)
}

fn answer(handle: *mut c_void, name: &CStr, caller: usize) -> *mut c_void {
    let Some(dlsym) = real::dlsym() else {
        return GO_ON;
    };
    // The driver asking itself gets its own.
    if real::in_driver(caller) {
        return GO_ON;
    }
    // SAFETY: the real dlsym, with the caller's handle and name. RTLD_DEFAULT searches from the program on, as for him.
    let found = unsafe { dlsym(handle, name.as_ptr()) };
    if found.is_null() {
        return GO_ON;
    }
    if table::is_hook(found) {
        // A search of the global scope found our own export: right if the driver has the function too.
        return own_export(found, name, dlsym);
    }
    if !real::in_driver(found as usize) && !real::find_driver(found as usize) {
        return GO_ON;
    }
    if real::in_driver(caller) {
        GO_ON
    } else {
        table::hook_of(found).unwrap_or(GO_ON)
    }
}

fn own_export(found: *mut c_void, name: &CStr, dlsym: real::Dlsym) -> *mut c_void {
    let driver_has_it = || real::find_driver(0) && elf::symbol_in(real::DRIVER, name).is_some();
    // SAFETY: the real dlsym; RTLD_NEXT is judged by our own return address: what is behind us in the global scope.
    let behind_us = || NonNull::new(unsafe { dlsym(RTLD_NEXT, name.as_ptr()) });
    if driver_has_it() || behind_us().is_some() {
        found
    } else {
        NOT_THERE as *mut c_void
    }
}

const _: () = assert!(RTLD_DEFAULT.is_null());

#[cfg(test)]
mod tests {
    use super::*;

    fn look_up(handle: *mut c_void, name: &CStr) -> *mut c_void {
        // SAFETY: our own stub, with a C string.
        unsafe { dlsym(handle, name.as_ptr()) }
    }

    #[test]
    fn names_that_are_not_cudas_go_straight_through() {
        assert_eq!(
            look_up(RTLD_DEFAULT, c"getpid") as usize,
            libc::getpid as *const () as usize
        );
        assert!(look_up(RTLD_DEFAULT, c"cudnnCreate").is_null());
        assert!(look_up(RTLD_DEFAULT, c"no_such_function").is_null());
        // SAFETY: our own stub, with C strings.
        let versioned = unsafe {
            core::mem::transmute::<
                unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void,
                real::Dlvsym,
            >(dlvsym)(RTLD_DEFAULT, c"getpid".as_ptr(), c"GLIBC_2.2.5".as_ptr())
        };
        assert_eq!(versioned as usize, libc::getpid as *const () as usize);
    }

    #[test]
    fn a_driver_function_is_not_there_without_a_driver() {
        assert!(look_up(RTLD_DEFAULT, c"cuMemAlloc_v2").is_null());
        // SAFETY: dlerror gives null or a C string.
        let said = unsafe { libc::dlerror() };
        assert!(!said.is_null());
    }
}
