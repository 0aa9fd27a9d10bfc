//! More threads than anybody should have: nothing is lost as long as there is room, and what is lost is counted, allocations
//! and frees apart.

use gpumem_collector::model::Process;
use gpumem_collector::model::process::Lost;
use gpumem_tests::ledger::{self, Ledger};
use gpumem_tests::place::finish;
use gpumem_tests::{Place, cc};

/// Runs `threads.c` and checks what was recorded of it.
#[track_caller]
fn run(place: &Place, threads: u32, how: &str, check: impl FnOnce(&Process, Ledger, Ledger)) {
    let program = cc::program("threads.c", &place.path("threads"), &[]);
    let mut command = place.preloaded(program);
    command
        .args([&threads.to_string(), how])
        .env("GPUMEM_SIM_MEMORY", "256GiB");
    let finished = finish(&mut command).well();
    let pid = finished.out.trim().parse().expect("the job says its pid");
    let driver = ledger::of_driver(&place.truth(pid), &[]);
    let made = ledger::kinds(&driver).get("device").copied();
    assert_eq!(made, Some(threads as usize + 1));
    let session = place.spooled();
    let process = session.process(pid).expect("its record");
    assert!(process.end().is_some_and(|end| end.orderly));
    let recorded = ledger::of_model(process);
    check(process, driver, recorded);
}

#[track_caller]
fn assert_whole(process: &Process, driver: Ledger, recorded: Ledger) {
    assert_eq!(process.lost(), Lost::default());
    assert_eq!(process.unknown_frees(), 0);
    ledger::assert_equal(&driver, &recorded);
}

#[test]
fn twelve_hundred_at_once() {
    run(&Place::new(), 1200, "at once", assert_whole);
}

#[test]
fn ten_thousand_one_after_the_other() {
    run(&Place::new(), 10_000, "in turn", assert_whole);
}

#[test]
fn what_is_lost_of_twenty_five_hundred_at_once_is_counted() {
    let place = Place::new();
    run(&place, 2500, "at once", |process, driver, recorded| {
        // A thread is recorded, or it is not: two allocations and a free.
        let missing = driver.difference(&recorded).count() as u64;
        assert!(missing > 0, "there is room for every thread");
        assert_eq!(recorded.difference(&driver).count(), 0);
        let lost = process.lost();
        assert_eq!(
            (lost.allocations, lost.frees, lost.other),
            (2 * missing, missing, 0)
        );
        assert!(lost.since_ns.is_some());
        assert_eq!(process.unknown_frees(), 0);

        // And it is said.
        let leaks = finish(place.gpumem(&["leaks"]).arg(place.spool())).well();
        let said: Vec<&str> = leaks.out.split_whitespace().collect();
        let note = format!(
            "{} events of process {} were lost ({} allocations, {missing} frees)",
            3 * missing,
            process.definition().pid,
            2 * missing
        );
        assert!(said.join(" ").contains(&note), "{note}\n{}", leaks.out);
    });
}
