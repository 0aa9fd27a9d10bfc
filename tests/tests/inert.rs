//! A process that uses no GPU memory is left alone: the same output, no thread, no file, no socket, nothing written.

use std::path::Path;
use std::process::Command;

use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc, python};

/// Runs a program without and with the shim; both must end and print alike, and nothing may have been written.
#[track_caller]
fn same(program: &Path, arguments: &[&str]) -> String {
    let place = Place::new();
    let run = |mut command: Command| finish(command.args(arguments));
    let plain = run(place.plain(program));
    let shimmed = run(place.preloaded(program));
    assert_eq!(shimmed.out, plain.out);
    assert_eq!(shimmed.err, plain.err);
    assert_eq!(shimmed.code(), plain.code());
    assert_eq!(place.spool_files(), Vec::<String>::new());
    let left = std::fs::read_dir(place.path("")).expect("the place");
    let mut left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        // The simulated driver's own, of a program that started it.
        .filter(|name| !name.to_string_lossy().starts_with("truth."))
        .collect();
    left.sort();
    assert_eq!(left, ["driver", "spool"]);
    shimmed.out
}

#[test]
fn true_and_false_and_a_shell() {
    same(Path::new("/bin/true"), &[]);
    same(Path::new("/bin/false"), &[]);
    let out = same(
        Path::new("/bin/bash"),
        &[
            "-c",
            "echo one | tr a-z A-Z; ls /proc/self/task | wc -l; ls /proc/self/fd | wc -l; exit 7",
        ],
    );
    assert!(out.starts_with("ONE\n1\n"), "{out}");
}

#[test]
fn a_program_that_looks_functions_up() {
    let place = Place::without_driver();
    let program = cc::program("inert.c", &place.path("inert"), &[]);
    let out = same(&program, &[]);
    assert!(out.starts_with("threads 1\nfiles "), "{out}");
    assert!(
        out.contains("signal handlers 0\ngetpid 1\nnothing 1\nnot CUDA's 1\n"),
        "{out}"
    );
}

#[test]
fn a_program_that_starts_the_driver_and_makes_no_context() {
    let place = Place::without_driver();
    let program = cc::program("inert.c", &place.path("inert"), &[]);
    let out = same(&program, &["cuda"]);
    assert!(
        out.contains("init 0, devices 0 1, look up 0\nwatched 1\n"),
        "{out}"
    );
    let (first, last) = out.split_once("getpid").expect("two accounts");
    assert!(last.ends_with(first), "{out}");
}

#[test]
fn a_program_that_frees_what_it_never_had() {
    let place = Place::without_driver();
    let program = cc::program("inert.c", &place.path("inert"), &[]);
    let out = same(&program, &["frees"]);
    let status = out.lines().find_map(|line| line.strip_prefix("allocate "));
    assert!(
        status.is_some_and(|status| !status.starts_with("0,")),
        "without a context nothing can be allocated: {out}"
    );
    let (first, last) = out.split_once("getpid").expect("two accounts");
    assert!(last.ends_with(first), "{out}");
}

#[test]
fn python_and_its_helpers() {
    let Some(python) = python::any() else { return };
    let script = "\
import ctypes, multiprocessing, os, subprocess, threading
print(ctypes.CDLL(None).getpid() == os.getpid())
print(len(os.listdir('/proc/self/task')), sorted(map(int, os.listdir('/proc/self/fd'))))
print(subprocess.run(['echo', 'child'], capture_output=True).stdout)
with multiprocessing.get_context('fork').Pool(1) as pool:
    print(pool.map(abs, [-1]))
thread = threading.Thread(target=print, args=('thread',))
thread.start()
thread.join()
print(open('/proc/self/maps').read().count('memfd:'))
";
    let out = same(&python, &["-c", script]);
    assert!(out.contains("True\n1 ["), "{out}");
}
