//! Native frames as the probe sees them against libgcc's `_Unwind_Backtrace`, in C programs compiled here.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

fn compiler() -> Option<&'static str> {
    let found = ["gcc", "cc"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    if found.is_none() {
        println!("skipped: no C compiler on this machine");
    }
    found
}

fn compile(compiler: &str, source: &str, flags: &[&str], output: &Path) -> PathBuf {
    common::run(
        Command::new(compiler)
            .args(flags)
            .arg("-o")
            .arg(output)
            .arg(common::beside(source)),
    );
    output.to_path_buf()
}

fn frames_equal_libgccs(name: &str, optimisation: &[&str]) {
    let Some(compiler) = compiler() else {
        return;
    };
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let shared = ["-O2", "-shared", "-fPIC"];
    let medium = compile(
        compiler,
        "plugin.c",
        &[&shared[..], &["-DROOM=1000"]].concat(),
        &folder.join("medium.so"),
    );
    let large = compile(
        compiler,
        "plugin.c",
        &[&shared[..], &["-DROOM=3000"]].concat(),
        &folder.join("large.so"),
    );
    let flags = [
        &["-pthread", "-fPIE", "-pie", "-fno-optimize-sibling-calls"],
        optimisation,
    ]
    .concat();
    let program = compile(compiler, "unwinders.c", &flags, &folder.join("unwinders"));

    let text = common::run(
        Command::new(program)
            .arg(common::probe())
            .args([medium, large]),
    );
    let mut cases = 0;
    for line in text.lines() {
        if let Some((case, counts)) = line
            .split_once(": ")
            .filter(|(_, counts)| counts.contains(" equal"))
        {
            let (equal, different) = counts.split_once(" equal, ").unwrap();
            assert_ne!(equal, "0", "{case}\n{text}");
            assert_eq!(different, "0 different", "{case}\n{text}");
            cases += 1;
        }
    }
    assert_eq!(cases, 11, "{text}");
    // A stack that is not the thread's own: nothing is read, and it is counted.
    assert!(text.contains("other stack: id 0, counted 1\n"), "{text}");
    // The loader did put the one library where the other had been, so stale rules would have been met.
    let again = text
        .lines()
        .find_map(|line| line.strip_prefix("same address: "))
        .unwrap();
    assert!(again.parse::<u32>().unwrap() > 10, "{text}");
}

#[test]
fn frames_equal_libgccs_in_unoptimised_code() {
    frames_equal_libgccs("O0", &["-O0"]);
}

#[test]
fn frames_equal_libgccs_in_optimised_code() {
    frames_equal_libgccs("O2", &["-O2", "-fomit-frame-pointer"]);
}

#[test]
fn frames_equal_libgccs_in_vector_code() {
    frames_equal_libgccs(
        "O3",
        &["-O3", "-march=x86-64-v3", "-mprefer-vector-width=256"],
    );
}
