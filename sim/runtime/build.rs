//! Says which runtime this is, and gives a shared one its name and the version
//! of its symbols.
//!
//! Three packages are made of one source: version 13, version 12, and version
//! 13 as an archive, whose symbols have no versions.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-check-cfg=cfg(twelve)");
    println!("cargo:rustc-check-cfg=cfg(archive)");
    let package = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    if package.ends_with("static") {
        println!("cargo:rustc-cfg=archive");
        return Ok(());
    }
    let soname = if package.ends_with("12") {
        println!("cargo:rustc-cfg=twelve");
        "libcudart.so.12"
    } else {
        "libcudart.so.13"
    };
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let script = folder.join("versions.map");
    std::fs::write(
        &script,
        format!("{soname} {{ global: cuda*; __cuda*; }};\n"),
    )?;
    let script = script.display();
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={script}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
    // The runtime's own calls of itself stay in it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    Ok(())
}
