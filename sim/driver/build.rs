//! Gives the library the driver's name.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Programs look for `libcuda.so.1`, and the loader knows a library that is
    // already there by its soname.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
    // The table must hold this library's own functions even when a preloaded
    // library exports the same names; a real driver binds itself so, too.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
}
