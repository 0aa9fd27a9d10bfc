//! Every function of the shim's hook table, looked up by name and at every version: the shim's own is what comes back exactly
//! if the driver has the function. Nothing is offered that the driver lacks.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use gpumem_tests::place::finish;
use gpumem_tests::routes::{self, Routes};
use gpumem_tests::{Place, artefacts, cc, deps};

/// Versions of CUDA at which interfaces changed, and some between.
const VERSIONS: [u32; 16] = [
    2000, 3020, 4000, 6000, 7000, 8000, 10020, 11000, 11020, 11030, 11040, 12000, 12020, 12050,
    13000, 13020,
];

/// The name that `cuGetProcAddress` knows a function by: without `_v2` and the like, without `_ptsz`.
fn base(name: &str) -> &str {
    let name = name.strip_suffix("_ptsz").unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((base, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => name,
    }
}

/// The functions that look up by name and version.
const FINDERS: [&str; 3] = [
    "cuGetProcAddress",
    "cuGetProcAddress_v2",
    "cuGetProcAddress_v2_ptsz",
];

fn check(driver: &Path) {
    let has = routes::exports(driver);
    let finders: Vec<&str> = FINDERS
        .into_iter()
        .filter(|finder| has.contains_key(*finder))
        .collect();
    assert!(finders.len() >= 2, "{finders:?}");
    for finder in finders {
        check_finder(driver, finder);
    }
}

fn check_finder(driver: &Path, finder: &str) {
    let place = Place::on(driver);
    let program = cc::program("rows.c", &place.path("rows"), &[]);
    let rows = routes::exports(&artefacts::shim());
    assert!(rows.len() > 30, "{} rows", rows.len());
    let mut questions = String::new();
    for name in rows.keys() {
        let _ = writeln!(questions, "{name} dlsym 0");
    }
    for name in rows.keys().map(|name| base(name)).collect::<BTreeSet<_>>() {
        for version in VERSIONS {
            for flags in 0..3 {
                let _ = writeln!(questions, "{name} {version} {flags}");
            }
        }
    }
    let input = place.path("questions");
    std::fs::write(&input, &questions).expect("a new file");
    let ask = |mut command: std::process::Command| -> Routes {
        command
            .arg(finder)
            .stdin(File::open(&input).expect("the questions"));
        routes::parse(&finish(&mut command).well().out)
    };
    let plain = ask(place.plain(&program));
    let shimmed = ask(place.preloaded(&program));
    let served = routes::check(driver, &plain, &shimmed);

    let has = routes::exports(driver);
    for name in rows.keys() {
        let asked = (name.clone(), "dlsym".to_owned(), 0);
        assert_eq!(
            served.contains(&asked),
            has.contains_key(name),
            "{name} by dlsym"
        );
    }
    assert!(
        served.len() > 500,
        "{} look-ups by {finder} were served by the shim",
        served.len()
    );
}

#[test]
fn of_the_simulated_driver() {
    check(&artefacts::sim_driver());
}

#[test]
fn of_nvidias_driver() {
    if let Some(driver) = deps::real_driver() {
        check(&driver);
    }
}
