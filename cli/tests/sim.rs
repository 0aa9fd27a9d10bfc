//! `gpumem sim` and `run --sim` as a person may misuse them: the status is 2 and the choices are named.

use std::path::Path;
use std::process::{Command, Output};

fn gpumem(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gpumem"))
        .args(arguments)
        .env_remove("GPUMEM_SIM")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn wrong_usage_names_the_choices() {
    for (arguments, said) in [
        (
            &["sim", "--device", "voodoo2", "--", "true"][..],
            "h100-sxm",
        ),
        (
            &["sim", "--device", "a100", "--", "true"],
            "a100-40, a100-80",
        ),
        (
            &["sim", "t4", "--device", "t4", "--", "true"],
            "cannot be used with",
        ),
        (&["sim", "--memory", "16GX", "--", "true"], "16GX"),
        (&["sim", "--memory", "16", "--", "true"], "16GiB"),
        (
            &["sim", "t4", "--memory", "1MiB", "--", "true"],
            "more than the",
        ),
        (&["sim", "--count", "65", "--", "true"], "from 1 to 64"),
        (
            &["sim", "--vary", "batch=8..1", "--", "true"],
            "NAME=LOW..HIGH",
        ),
        (&["sim", "--vary", "batch=1..8", "--", "true"], "{batch}"),
        (&["sim", "--timeout", "soon", "--", "true"], "10min"),
        (&["sim", "--small-d2h", "on", "--", "true"], "off"),
        (&["sim"], "--"),
        (&["sim", "t4", "train.py"], "Usage: gpumem sim"),
        (&["run", "--sim=t4,memory=lots", "--", "true"], "lots"),
        (&["run", "--sim=t4,cores=4", "--", "true"], "memory=SIZE"),
        (&["run", "--small-d2h", "16", "--", "true"], "--sim"),
    ] {
        let output = gpumem(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let err = text(&output.stderr);
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert_eq!(text(&output.stdout), "", "{arguments:?}");
    }
}

#[test]
fn the_devices_are_listed() {
    let output = gpumem(&["sim", "--devices"]);
    assert_eq!(output.status.code(), Some(0));
    let out = text(&output.stdout);
    assert!(out.starts_with("DEVICE "), "{out}");
    for device in ["h200 ", "a100-40 ", "rtx-4090 ", "t4 "] {
        assert!(out.contains(&format!("\n{device}")), "{out}");
    }
}

#[test]
fn a_simulator_that_is_not_there_is_said_to_be_missing() {
    let empty = tempfile::tempdir().unwrap();
    let run = |folder: &Path, arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_gpumem"))
            .args(arguments)
            .env("GPUMEM_SIM", folder)
            .output()
            .unwrap()
    };
    for arguments in [&["sim", "--", "true"][..], &["run", "--sim", "--", "true"]] {
        let output = run(empty.path(), arguments);
        assert_eq!(output.status.code(), Some(125), "{arguments:?}");
        let err = text(&output.stderr);
        assert!(
            err.contains("GPUMEM_SIM") && err.contains("libgpumem_sim_"),
            "{err}"
        );
    }
}
