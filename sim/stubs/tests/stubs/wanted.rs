//! Every name that PyTorch asks for is there, in the version that it asks for.

use std::ffi::{CString, c_void};
use std::os::unix::ffi::OsStrExt;

/// The library that cargo has built.
fn library() -> *mut c_void {
    let path = std::env::current_exe()
        .unwrap()
        .with_file_name("libgpumem_sim_stubs.so");
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: a zero-ended path of a library whose start only opens itself.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    assert!(!library.is_null());
    library
}

#[test]
fn what_pytorch_asks_for_is_there() {
    let library = library();
    let find = |symbol: &str| {
        let (name, version) = symbol.split_once('@').unwrap_or((symbol, ""));
        let (name, of_version) = (CString::new(name).unwrap(), CString::new(version).unwrap());
        // SAFETY: zero-ended names of symbols, which are only looked up.
        let found = unsafe {
            if version.is_empty() {
                libc::dlsym(library, name.as_ptr())
            } else {
                libc::dlvsym(library, name.as_ptr(), of_version.as_ptr())
            }
        };
        !found.is_null()
    };
    let wanted = include_str!("wanted.txt").lines();
    let missing: Vec<_> = wanted
        .filter(|line| !line.starts_with('#') && !find(line))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn a_name_without_a_version_is_the_newest() {
    // SAFETY: a zero-ended name; the function has this signature in both versions.
    let version = unsafe {
        let found = libc::dlsym(library(), c"cublasLtGetVersion".as_ptr());
        assert!(!found.is_null());
        let function: extern "C" fn() -> usize = std::mem::transmute(found);
        function()
    };
    assert_eq!(version / 10_000, 13);
}
