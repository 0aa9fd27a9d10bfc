//! Gives the library the runtime's name and the versions of its symbols.

use std::path::PathBuf;

/// Both versions hold every function: the programs of either find theirs.
const VERSIONS: &str = "\
libcudart.so.12 { global: cuda*; __cuda*; };
libcudart.so.13 { global: cuda*; __cuda*; };
";

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let script = folder.join("versions.map");
    std::fs::write(&script, VERSIONS)?;
    let script = script.display();
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={script}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcudart.so.13");
    // The runtime's own calls of itself stay in it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    Ok(())
}
