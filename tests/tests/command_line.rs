//! A command line is part of who a process is; one that is too long to be kept whole is cut, and costs nothing else.

use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc};

#[test]
fn a_huge_command_line_is_cut() {
    let place = Place::new();
    let program = cc::program("exits.c", &place.path("exits"), &[]);
    let arguments: Vec<String> = (0..250)
        .map(|number| format!("{number:03}{}", "x".repeat(1197)))
        .collect();
    let finished = finish(place.preloaded(&program).args(&arguments)).well();
    let pid = finished.out.trim().parse().expect("the job says its pid");
    let session = place.spooled();
    assert!(session.notes.is_empty(), "{:?}", session.notes);
    let process = session.process(pid).expect("its record");
    let (first, rest) = process
        .definition()
        .command
        .split_first()
        .expect("a command");
    assert_eq!(first, &program.display().to_string());
    assert!((10..250).contains(&rest.len()), "{} arguments", rest.len());
    assert_eq!(rest, &arguments[..rest.len()]);
    // The rest of the record is there.
    assert_eq!(
        process.definition().executable,
        program.display().to_string()
    );
    assert!(process.end().is_some_and(|end| end.orderly));
    let live = process.live();
    assert_eq!(live.iter().map(|object| object.bytes).sum::<u64>(), 6 << 20);

    let ps = finish(place.gpumem(&["ps"]).arg(place.spool())).well();
    assert!(ps.out.contains(&pid.to_string()), "{}", ps.out);
}
