//! What programs may do with the loader, and seldom do: names at the end of what is mapped, a driver that is closed and opened
//! again.

use std::path::Path;

use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc, python};
use gpumem_wire::Object;

#[test]
fn a_name_is_not_read_past_its_end() {
    let place = Place::without_driver();
    let program = cc::program("page_end.c", &place.path("page_end"), &[]);
    let plain = finish(&mut place.plain(&program)).well();
    let shimmed = finish(&mut place.preloaded(&program)).well();
    assert_eq!(shimmed.out, plain.out);
    assert_eq!(plain.out.lines().count(), 6, "{}", plain.out);
    assert!(
        plain.out.contains("\"getpid\" 1, versioned 1"),
        "{}",
        plain.out
    );
}

/// The functions of Python's that are asked stay where they are.
#[test]
fn a_python_that_was_closed_may_still_be_asked() {
    for minor in [11, 12, 13] {
        let Some(python) = python::interpreter(minor) else {
            return;
        };
        let home = python.parent().and_then(Path::parent).expect("a prefix");
        let library = home.join(format!("lib/libpython3.{minor}.so.1.0"));
        if !library.is_file() {
            // An interpreter without a shared library cannot be closed.
            continue;
        }
        let place = Place::new();
        let program = cc::program("closes_python.c", &place.path("closes_python"), &[]);
        let mut command = place.preloaded(&program);
        command.arg(&library).env("PYTHONHOME", home);
        assert_eq!(finish(&mut command).well().out, "went on\n");
        let session = place.spooled();
        let [process] = &session.processes[..] else {
            panic!("one process: {:?}", session.notes);
        };
        assert_eq!(
            process
                .live()
                .iter()
                .filter(|object| object.bytes == 1 << 20)
                .count(),
            4
        );
    }
}

#[test]
fn a_driver_that_was_closed_after_a_look_up_is_reached_again() {
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("plain_driver.c", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let driver = driver.display().to_string();
    let user = cc::library("user.c", &place.path("libuser.so"), &[&driver]);
    let program = cc::program("reopened.c", &place.path("reopened"), &[]);
    let said = "linked: 0\nlooked up: 0\n";
    assert_eq!(
        finish(place.plain(&program).arg(&user)).well().out,
        said,
        "without the shim"
    );
    assert_eq!(
        finish(place.preloaded(&program).arg(&user)).well().out,
        said
    );
    let session = place.spooled();
    let [process] = &session.processes[..] else {
        panic!("one process: {:?}", session.notes);
    };
    let mut bytes: Vec<u64> = process
        .live()
        .iter()
        .filter(|object| object.object == Object::DeviceAllocation)
        .map(|object| object.bytes)
        .collect();
    bytes.sort_unstable();
    assert_eq!(bytes, [1000, 2000]);
}
