//! Every name that PyTorch asks for is there, in the version that it asks for.

use std::ffi::{CStr, CString, c_void};
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

/// A function of the library, by its name.
macro_rules! function {
    ($name:expr, $type:ty) => {{
        let name = CString::new($name).unwrap();
        // SAFETY: a zero-ended name, and the function has this signature.
        unsafe {
            let found = libc::dlsym(library(), name.as_ptr());
            assert!(!found.is_null(), "{}", $name);
            std::mem::transmute::<*mut c_void, $type>(found)
        }
    }};
}

/// XLA looks functions up by their names, and ends where these are missing.
#[test]
fn what_xla_asks_for_is_answered() {
    let cufft_version = function!("cufftGetVersion", extern "C" fn(&mut i32) -> i32);
    let mut version = 0;
    assert_eq!((cufft_version(&mut version), version), (0, 12_000));

    let property = function!("cusparseGetProperty", extern "C" fn(i32, &mut i32) -> i32);
    let parts = [0, 1, 2].map(|part| {
        let mut value = -1;
        assert_eq!(property(part, &mut value), 0);
        value
    });
    assert_eq!(parts, [12, 7, 0]);
    assert_ne!(property(3, &mut version), 0);

    let layout = function!(
        "cublasLtMatrixLayoutGetAttribute",
        extern "C" fn(usize, i32, *mut u8, usize, &mut usize) -> i32
    );
    let (mut value, mut written) = ([7_u8; 5], 0);
    assert_eq!(layout(0, 0, value.as_mut_ptr(), 4, &mut written), 0);
    assert_eq!((value, written), ([0, 0, 0, 0, 7], 4));

    for name in ["cublasGetStatusString", "cublasGetStatusName"] {
        let text = function!(name, extern "C" fn(i32) -> *const std::ffi::c_char);
        // SAFETY: a zero-ended text that lives for ever.
        let texts = [0, 15].map(|status| unsafe { CStr::from_ptr(text(status)) });
        assert_ne!(texts[0], texts[1]);
        assert!(!texts[1].is_empty());
    }
}

/// Each says of a matrix that it could be decomposed, where the program looks.
#[test]
fn a_decomposition_finds_nothing_wrong() {
    let mut infos = [7; 3];
    let batch = function!(
        "cusolverDnSpotrfBatched",
        extern "C" fn(usize, i32, i32, usize, i32, *mut i32, i32) -> i32
    );
    assert_eq!(batch(0, 0, 8, 0, 8, infos.as_mut_ptr(), 2), 0);
    assert_eq!(infos, [0, 0, 7]);

    // More parameters than registers hold.
    let mut info = 7;
    let values = function!(
        "cusolverDnZgesvdj",
        extern "C" fn(
            usize,
            i32,
            i32,
            i32,
            i32,
            usize,
            i32,
            usize,
            usize,
            i32,
            usize,
            i32,
            usize,
            i32,
            &mut i32,
            usize,
        ) -> i32
    );
    assert_eq!(
        values(0, 0, 0, 8, 8, 0, 8, 0, 0, 8, 0, 8, 0, 64, &mut info, 0),
        0
    );
    assert_eq!(info, 0);

    let size = function!(
        "cusolverDnZgesvdj_bufferSize",
        extern "C" fn(
            usize,
            i32,
            i32,
            i32,
            i32,
            usize,
            i32,
            usize,
            usize,
            i32,
            usize,
            i32,
            &mut i32,
            usize,
        ) -> i32
    );
    assert_eq!(size(0, 0, 0, 8, 4, 0, 8, 0, 0, 8, 0, 8, &mut info, 0), 0);
    assert_eq!(info, 32);
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
