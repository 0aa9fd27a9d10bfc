//! A folder of links under NVIDIA's names, of which one for each file is
//! preloaded: what programs get that were linked with NVIDIA's own libraries, or
//! open them by path.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use crate::folder::{Folder, compile, names};

/// A program, the library that it opens, and NVIDIA's two, which are impostors. The program's own search path leads to the impostors, as in Conda.
fn program(folder: &Folder) -> [PathBuf; 4] {
    let at = |name: &str| folder.0.join(name).to_str().unwrap().to_owned();
    let path = format!("-Wl,--disable-new-dtags,-rpath,{}", folder.0.display());
    let impostors = [
        ("libcudart.so.12", "runtime.map"),
        ("libcublas.so.12", "blas.map"),
    ];
    for (name, versions) in impostors {
        let soname = format!("-Wl,-soname,{name}");
        let versions = format!("-Wl,--version-script={versions}");
        compile(&[
            "-shared",
            "-fPIC",
            &soname,
            &versions,
            "impostor.c",
            "-o",
            &at(name),
        ]);
    }
    let (runtime, blas) = (at("libcudart.so.12"), at("libcublas.so.12"));
    let (plugin, program) = (at("plugin.so"), at("program"));
    compile(&[
        "-shared", "-fPIC", "plugin.c", &runtime, &blas, &path, "-o", &plugin,
    ]);
    compile(&["program.c", &path, "-ldl", "-o", &program]);
    [program.into(), plugin.into(), runtime.into(), blas.into()]
}

/// What the program said in an environment.
fn said([program, opened @ ..]: &[PathBuf; 4], environment: &[(&str, &str)]) -> String {
    let output = Command::new(program)
        .args(opened)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn what_is_preloaded_wins_over_search_paths_and_paths() {
    let (ours, theirs) = (Folder::of_names("preload"), Folder::new("theirs"));
    let program = program(&theirs);
    let folder = ours.0.to_str().unwrap();
    let none = "999999 999 -1 1 11\n";
    // A search path of a library's own goes before this variable.
    assert_eq!(said(&program, &[("LD_LIBRARY_PATH", folder)]), none);

    // One name of each file, by its path.
    let mut files = BTreeSet::new();
    let paths: Vec<_> = names()
        .filter(|(_, file)| files.insert(*file))
        .map(|(name, _)| format!("{folder}/{name}"))
        .collect();
    let preload = paths.join(":");
    let environment = [("LD_LIBRARY_PATH", folder), ("LD_PRELOAD", &preload)];
    assert_eq!(said(&program, &environment), "0 0 1 1 00\n");
}
