//! A driver call may be left in other ways than by its return, or not at all: what comes after it is recorded.

use gpumem_collector::model::Session;
use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc};
use gpumem_wire::Object;

fn check(recorded: bool) {
    if !cc::has_cxx() {
        return;
    }
    let place = Place::without_driver();
    let driver = place.driver_folder().join("libcuda.so.1");
    cc::library("odd_driver.cc", &driver, &["-Wl,-soname,libcuda.so.1"]);
    let driver = driver.display().to_string();
    let program = cc::program("ways_out.cc", &place.path("ways_out"), &[&driver]);
    let (mut command, session): (_, fn(&Place) -> Session) = if recorded {
        (place.recorded(program), Place::recording)
    } else {
        (place.preloaded(program), Place::spooled)
    };
    let finished = finish(&mut command).well();
    assert_eq!(finished.out, "0\n", "calls of threads of the shim's");
    let session = session(&place);
    let [process] = &session.processes[..] else {
        panic!("one process: {:?}", session.notes);
    };
    assert_eq!(process.lost().total(), 0);
    assert!(process.end().is_some_and(|end| end.orderly));
    let live = process.live();
    let mut bytes: Vec<u64> = live
        .iter()
        .filter(|object| object.object == Object::DeviceAllocation)
        .map(|object| object.bytes)
        .collect();
    bytes.sort_unstable();
    let expected: Vec<u64> = (1001..1005).chain(2000..2300).collect();
    assert_eq!(bytes, expected);
}

#[test]
fn under_plain_preload() {
    check(false);
}

#[test]
fn under_gpumem_run() {
    check(true);
}
