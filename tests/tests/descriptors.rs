//! A program may close any descriptor and give its number to another file. What it has then is its own: the shim neither writes
//! to it nor closes it, in the program and in its children.

use std::fs;

use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc};

/// Runs `descriptors.c`, which takes over the number of the shim's connection ("listen") or spool file.
#[track_caller]
fn assert_kept(more: &[&str]) {
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("plain_driver.c", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let program = cc::program("descriptors.c", &place.path("descriptors"), &[]);
    let mut command = place.preloaded(&program);
    let finished = finish(command.arg(place.path("mine")).args(more)).well();
    assert_eq!(
        finished.out,
        "child: kept\nchild that allocates: kept\nparent: kept\nat exit: kept\n"
    );
    let written = fs::read_to_string(place.path("mine")).expect("the program's file");
    assert_eq!(written, "mine\n".repeat(4), "the program's words alone");
}

#[test]
fn in_place_of_the_connection() {
    assert_kept(&["listen"]);
}

#[test]
fn in_place_of_the_connection_without_stderr() {
    assert_kept(&["listen", "quiet"]);
}

#[test]
fn in_place_of_the_spool_file() {
    assert_kept(&[]);
}

#[test]
fn in_place_of_the_spool_file_without_stderr() {
    assert_kept(&["quiet"]);
}
