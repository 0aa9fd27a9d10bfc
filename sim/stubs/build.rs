//! Gives the symbols the versions that programs ask for.

use std::path::PathBuf;

/// Libraries whose symbols have a version, which is called like the library.
const VERSIONS: &[&str] = &[
    "libcublas.so.12",
    "libcublas.so.13",
    "libcublasLt.so.12",
    "libcublasLt.so.13",
    "libcudnn.so.8",
    "libcudnn.so.9",
    "libcufft.so.11",
    "libcufft.so.12",
    "libcupti.so.12",
    "libcupti.so.13",
    "libcusolver.so.11",
    "libcusolver.so.12",
    "libcusparse.so.12",
    "libnvToolsExt.so.1",
    "libnvrtc.so.12",
    "libnvrtc.so.13",
    "NVSHMEM",
];

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let script = folder.join("versions.map");
    // What a version holds is said where the symbol is defined.
    let nodes: String = VERSIONS
        .iter()
        .map(|version| format!("{version} {{ }};\n"))
        .collect();
    std::fs::write(&script, nodes)?;
    let script = script.display();
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={script}");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libgpumem_sim_stubs.so");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    // What it opens is beside it, whatever the program's own search path is.
    println!("cargo:rustc-cdylib-link-arg=-Wl,--enable-new-dtags,-rpath,$ORIGIN");
    Ok(())
}
