//! How this library comes to be all of NVIDIA's, when it is preloaded.
//!
//! *By name.* The loader takes for `libcublas.so.13` what is loaded under that
//! name. This library has many names, and the loader knows the one by which it
//! was preloaded; so at its start it opens itself by the others. They are looked
//! up in `LD_LIBRARY_PATH` and beside it, never in the program's own search path
//! (`DT_RPATH`), because this library has one of its own (`DT_RUNPATH`). To
//! preload bare names instead goes by the program's, where NVIDIA's may lie: so
//! it is in Conda.
//!
//! *By path.* That the loader compares with nothing: it maps the file beside
//! ours, where its first call fails. Python packages open NVIDIA's wheels so.
//! Since this library is preloaded, its `dlopen` is asked first: what has the
//! name of a library that is loaded already is that one. All else goes on as if
//! it had not been asked, caller and all, because the loader looks at the
//! caller's own search path.

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

type Open = unsafe extern "C" fn(*const c_char, i32) -> *mut c_void;

/// Names, files and versions of what is simulated.
const NAMES: &str = include_str!("../names.txt");

/// What cargo calls this library.
const OWN_FILE: &str = "libgpumem_sim_stubs.so";

/// Address of the loader's `dlopen`, or 0 until it was looked up.
static REAL: AtomicUsize = AtomicUsize::new(0);

/// Opens a library.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn dlopen(path: *const c_char, flags: i32) -> *mut c_void {
    // The parameters are kept, and what answers when nothing is found sees the
    // registers and the return address as they came.
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {preloaded}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, qword ptr [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2:",
        "ret",
        preloaded = sym preloaded,
        real = sym REAL,
    )
}

/// The loaded library that a path means, or NULL.
unsafe extern "C" fn preloaded(path: *const c_char, flags: i32) -> *mut c_void {
    let Some(real) = real() else {
        return std::ptr::null_mut();
    };
    if path.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: not NULL, so the caller vouches for a zero-ended path.
    let Some(name) = simulated_name(unsafe { CStr::from_ptr(path) }) else {
        return std::ptr::null_mut();
    };
    // SAFETY: a zero-ended name; nothing is loaded.
    unsafe { real(name.as_ptr(), flags | libc::RTLD_NOLOAD) }
}

/// Called by the loader when this library is loaded.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = take_names;

/// Makes the loader know this library by all its names that lead to it. Nothing
/// else is loaded.
extern "C" fn take_names() {
    for (name, file) in rows() {
        if file != OWN_FILE {
            continue;
        }
        if let Ok(name) = CString::new(name) {
            // SAFETY: a zero-ended name; nothing new is loaded.
            unsafe { dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        }
    }
}

/// Name and file of each simulated library.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.lines().filter_map(|line| {
        let mut words = line.split('#').next()?.split_whitespace();
        Some((words.next()?, words.next()?))
    })
}

/// The file's name, if the path has a folder and the name is one of ours.
fn simulated_name(path: &CStr) -> Option<&CStr> {
    let bytes = path.to_bytes_with_nul();
    let at = bytes.iter().rposition(|byte| *byte == b'/')?;
    let name = CStr::from_bytes_with_nul(bytes.get(at + 1..)?).ok()?;
    rows()
        .any(|(known, _)| known.as_bytes() == name.to_bytes())
        .then_some(name)
}

/// The loader's `dlopen`.
fn real() -> Option<Open> {
    // Relaxed: the address is the same whoever looks it up, and nothing is
    // published by it.
    let mut address = REAL.load(Ordering::Relaxed);
    if address == 0 {
        // By its version, which ours has not: glibc 2.34 and newer, then older.
        let find = |version: &CStr| {
            // SAFETY: zero-ended names; the symbol is only looked up.
            unsafe { libc::dlvsym(libc::RTLD_DEFAULT, c"dlopen".as_ptr(), version.as_ptr()) }
        };
        address = [c"GLIBC_2.34", c"GLIBC_2.2.5"]
            .into_iter()
            .map(|version| find(version) as usize)
            .find(|address| *address != 0)
            .unwrap_or(0);
        // Relaxed: as above.
        REAL.store(address, Ordering::Relaxed);
    }
    // SAFETY: 0, which is `None`, or the loader's function of this signature.
    unsafe { std::mem::transmute::<usize, Option<Open>>(address) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_to_simulated_names_are_meant() {
        let name = |path: &CStr| simulated_name(path).map(CStr::to_owned);
        let runtime = Some(c"libcudart.so.12".to_owned());
        assert_eq!(name(c"/a/nvidia/cuda_runtime/lib/libcudart.so.12"), runtime);
        assert_eq!(name(c"libcudart.so.12"), None, "the loader knows it");
        assert_eq!(name(c"/usr/lib/libm.so.6"), None);
        assert_eq!(name(c"/a/libcudart.so.12/"), None);
        assert_eq!(name(c""), None);
    }
}
