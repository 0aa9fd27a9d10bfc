//! `gpumem run` as a program sees it: its input, its signals, its exit status, its recording.
//!
//! The C library stands in for the shim: preloading it changes nothing, so what is tested here is `run` alone.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A library that is certain to be loadable: the C library of this very process.
fn harmless_library() -> PathBuf {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .map(PathBuf::from)
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libc.so") || name.starts_with("libc-")
        })
        .unwrap()
}

fn gpumem(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gpumem"));
    command
        .env("GPUMEM_SHIM", harmless_library())
        .env("GPUMEM_DIR", home)
        .env("TMPDIR", home)
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("LD_PRELOAD");
    command
}

fn run(home: &Path, arguments: &[&str]) -> Output {
    gpumem(home).arg("run").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_exit_status_is_the_programs_own() {
    let home = tempfile::tempdir().unwrap();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let output = run(home.path(), &["--", "sh", "-c", script]);
        assert_eq!(output.status.code(), Some(code), "{script}");
        assert!(text(&output.stderr).contains("no CUDA call was seen"));
    }
    let missing = run(home.path(), &["no-such-program-here"]);
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("no-such-program-here was not found"));
    let folder = run(home.path(), &["/"]);
    assert_eq!(folder.status.code(), Some(126));
}

#[test]
fn input_output_and_variables_pass_through() {
    let home = tempfile::tempdir().unwrap();
    let own = harmless_library();
    let mut child = gpumem(home.path())
        .args([
            "run",
            "sh",
            "-c",
            "cat; echo $LD_PRELOAD; test -S $GPUMEM_SOCKET && echo socket",
        ])
        .env("LD_PRELOAD", &own)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"given\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let own = own.canonicalize().unwrap().display().to_string();
    let lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "given");
    assert!(lines[1].starts_with(&format!("{own}:")), "{lines:?}");
    assert_eq!(lines[2], "socket");
}

/// A program that says which signal it got. It says first that it listens.
fn listener(home: &Path) -> (Child, BufReader<std::process::ChildStdout>) {
    let script = "trap 'echo got TERM; exit 3' TERM; trap 'echo got INT; exit 4' INT; echo ready; \
                  while :; do read line || exit 5; done";
    let mut child = gpumem(home)
        .args(["run", "--", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut ready = String::new();
    lines.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    (child, lines)
}

#[test]
fn signals_sent_to_gpumem_reach_the_program() {
    let home = tempfile::tempdir().unwrap();
    for (signal, code) in [("TERM", 3), ("INT", 4)] {
        let (mut child, mut lines) = listener(home.path());
        // The shell's own kill: the program of that name is not on every machine.
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{signal} {}", child.id())])
            .status()
            .unwrap();
        assert!(sent.success());
        // A shell runs its trap once its read is over, and the signal ends it.
        let mut said = String::new();
        lines.read_to_string(&mut said).unwrap();
        assert_eq!(said, format!("got {signal}\n"));
        assert_eq!(child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn a_recording_is_never_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("run-%p%%.gpumem");
    let named = home.path().join("taken.gpumem");
    fs::write(&named, "mine").unwrap();
    let named = named.to_str().unwrap();
    let output = run(home.path(), &["-o", named, "--", "true"]);
    assert!(text(&output.stderr).contains("taken.1.gpumem"));
    assert_eq!(fs::read_to_string(named).unwrap(), "mine");
    assert!(home.path().join("taken.1.gpumem").exists());
    run(home.path(), &["-o", file.to_str().unwrap(), "--", "true"]);
    let made = fs::read_dir(home.path()).unwrap().filter_map(Result::ok);
    assert!(made.map(|entry| entry.file_name()).any(|name| {
        let name = name.to_string_lossy().into_owned();
        name.starts_with("run-") && name.ends_with("%.gpumem") && !name.contains("%p")
    }));
}

#[test]
fn a_run_in_which_nothing_was_seen_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    run(home.path(), &["--", "true"]);
    run(home.path(), &["--", "no-such-program-here"]);
    let left: Vec<_> = fs::read_dir(home.path())
        .unwrap()
        .filter_map(Result::ok)
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left, Vec::<String>::new());
}

#[test]
fn a_missing_shim_says_where_it_was_looked_for() {
    let home = tempfile::tempdir().unwrap();
    let output = gpumem(home.path())
        .env("GPUMEM_SHIM", home.path().join("nowhere.so"))
        .args(["run", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    let said = text(&output.stderr);
    assert!(
        said.contains("nowhere.so") && said.contains("GPUMEM_SHIM"),
        "{said}"
    );
}

#[test]
fn a_source_that_cannot_be_read_is_status_3_and_says_why() {
    let home = tempfile::tempdir().unwrap();
    let foreign = home.path().join("notes.gpumem");
    fs::write(&foreign, "these are my notes").unwrap();
    let foreign = foreign.to_str().unwrap();
    for (source, said) in [
        (foreign, "not a gpumem capture"),
        ("/no/such/file", "is no capture, folder or process id"),
        ("4194305", "no recording of process 4194305"),
    ] {
        for verb in ["leaks", "ps"] {
            let output = gpumem(home.path()).args([verb, source]).output().unwrap();
            assert_eq!(output.status.code(), Some(3), "{verb} {source}");
            assert!(
                text(&output.stderr).contains(said),
                "{}",
                text(&output.stderr)
            );
        }
    }
}

#[test]
fn a_recording_of_nothing_is_read_without_complaint() {
    let home = tempfile::tempdir().unwrap();
    run(
        home.path(),
        &["-o", home.path().join("x.gpumem").to_str().unwrap(), "true"],
    );
    let output = gpumem(home.path())
        .args([
            "leaks",
            home.path().join("x.gpumem").to_str().unwrap(),
            "--json",
        ])
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stdout),
        "{\"schema\":\"gpumem.leaks/1\",\"processes\":[]}\n"
    );
}
