//! The suite of `tests/gpu/`, on the simulated device: real PyTorch under the real gpumem.

use std::path::Path;
use std::process::Command;

use gpumem_tests::{artefacts, deps};

const SUITE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/gpu/run.py");

macro_rules! suite {
    ($($test:ident)*) => {
        $(
            #[test]
            fn $test() {
                run(stringify!($test));
            }
        )*

        #[test]
        fn the_whole_suite_is_run() {
            let text = std::fs::read_to_string(SUITE).unwrap();
            let there: Vec<_> = text
                .lines()
                .filter_map(|line| line.strip_prefix("def test_")?.strip_suffix("(bench):"))
                .collect();
            let run = [$(stringify!($test)),*];
            assert_eq!(there, run.map(|name| name.strip_prefix("test_").unwrap()));
        }
    };
}

suite! {
    test_totals_of_the_default_allocator
    test_totals_with_expandable_segments
    test_bytes_of_the_asynchronous_backend
    test_bytes_without_a_cache
    test_a_leak_is_named_under_run
    test_a_leak_in_expandable_segments_is_named
    test_a_leak_is_named_under_plain_preload
    test_the_demo_program
}

fn run(test: &str) {
    let Some(torch) = deps::torch() else {
        return;
    };
    let output = Command::new(torch.python())
        .arg(Path::new(SUITE))
        .arg("--gpumem")
        .arg(artefacts::gpumem())
        .arg("--sim")
        .arg(torch.folder())
        .arg(test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.ends_with("1 passed, 0 failed, 0 skipped\n"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
