//! `gpumem doctor` on real files, each with what keeps the recorder out of it; and what `gpumem run` says of the same.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpumem_tests::place::finish;
use gpumem_tests::{Finished, Place, artefacts, cc, deps, python};
use serde_json::Value;

/// Another user than root.
const NOBODY: u32 = 65534;
/// A program that makes no CUDA call. Its status is 7, or 8 where the loader was told to be careful.
const QUIET: &str =
    "#include <sys/auxv.h>\nint main(void) { return getauxval(AT_SECURE) ? 8 : 7; }\n";

/// Compiles a program that makes no CUDA call.
#[track_caller]
fn quiet(place: &Place, name: &str, options: &[&str]) -> PathBuf {
    let (source, program) = (place.path("quiet.c"), place.path(name));
    fs::write(&source, QUIET).expect("a new file");
    let mut compiler = Command::new("cc");
    finish(compiler.args(options).arg("-o").args([&program, &source])).well();
    program
}

/// A file of the place's that may be executed.
fn executable(place: &Place, name: &str, bytes: &[u8]) -> PathBuf {
    let path = place.path(name);
    fs::write(&path, bytes).expect("a new file");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("our own file");
    path
}

fn doctor(place: &Place, options: &[&str], command: &[&str]) -> Finished {
    let mut doctor = place.gpumem(&["doctor", "--json"]);
    finish(doctor.args(options).arg("--").args(command))
}

/// The check of this name.
#[track_caller]
fn check(report: &Value, name: &str) -> Value {
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == name);
    found
        .unwrap_or_else(|| panic!("no {name} in {report:#}"))
        .clone()
}

/// The report on a program that is a problem, and what was found; it was not run.
#[track_caller]
fn refused(place: &Place, command: &[&str], found: &str) -> Value {
    let finished = doctor(place, &[], command);
    assert_eq!(finished.code(), 1, "{}{}", finished.out, finished.err);
    let report = finished.json();
    assert_eq!(report["ran"], false, "{report:#}");
    let program = check(&report, "program");
    assert_eq!(program["ok"], false);
    let said = program["found"].as_str().expect("a sentence");
    assert!(said.contains(found), "{said}");
    assert!(!program["mend"].is_null(), "{program}");
    program
}

/// `run` says beforehand, in one line, why it will see nothing, and ends with this status.
#[track_caller]
fn warned(place: &Place, command: &[&str], why: &str, code: i32) {
    let finished = finish(place.gpumem(&["run", "--"]).args(command));
    assert_eq!(finished.code(), code, "{}", finished.err);
    let first = finished.err.lines().next().unwrap_or_default();
    assert!(first.starts_with("gpumem: warning: "), "{}", finished.err);
    assert!(first.contains(why), "{first}");
    assert_eq!(finished.err.matches("warning: ").count(), 1);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of ours")
}

#[test]
fn a_machine_on_which_all_is_well() {
    let place = Place::new();
    let finished = finish(&mut place.gpumem(&["doctor"])).well();
    let driver = text(&place.driver_folder().join("libcuda.so.1")).to_owned();
    let words: Vec<&str> = finished.out.split_whitespace().collect();
    assert!(
        words.contains(&format!("{driver},").as_str()),
        "{}",
        finished.out
    );
    assert!(words.contains(&"simulated"), "{}", finished.out);
    assert!(!finished.out.contains("FAIL"), "{}", finished.out);
}

#[test]
fn a_program_whose_calls_arrive() {
    let place = Place::new();
    let job = artefacts::demo_job();
    let finished = doctor(&place, &[], &[text(&job)]).well();
    // What the program prints is not in the report's way.
    let report = finished.json();
    assert!(
        finished.err.contains("gpumem demo: done"),
        "{}",
        finished.err
    );
    assert_eq!(
        (&report["ran"], &report["status"]),
        (&true.into(), &0.into())
    );
    let calls = check(&report, "calls");
    assert_eq!(calls["level"], "ok");
    assert!(
        calls["found"]
            .as_str()
            .is_some_and(|found| found.contains("397 memory events")),
        "{calls}"
    );
    assert_eq!(place.spool_files(), Vec::<String>::new());
}

#[test]
fn a_driver_that_only_the_program_knows() {
    let place = Place::new();
    let path = format!("-Wl,-rpath,{}", text(&place.driver_folder()));
    let job = cc::program("exits.c", &place.path("exits"), &[&path]);
    let mut command = place.gpumem(&["doctor", "--json", "--"]);
    let report = finish(command.env_remove("LD_LIBRARY_PATH").arg(job))
        .well()
        .json();
    assert_eq!(check(&report, "driver")["ok"], true);
    assert_eq!(check(&report, "calls")["ok"], true);
}

#[test]
fn a_program_that_makes_no_call() {
    let place = Place::new();
    let job = quiet(&place, "quiet", &[]);
    let finished = doctor(&place, &[], &[text(&job)]);
    assert_eq!(finished.code(), 1);
    let report = finished.json();
    assert_eq!(
        (&report["ran"], &report["status"]),
        (&true.into(), &7.into())
    );
    assert_eq!(check(&report, "program")["ok"], true);
    let calls = check(&report, "calls");
    assert_eq!(calls["ok"], false);
    assert!(
        calls["found"]
            .as_str()
            .is_some_and(|found| found.contains("no CUDA call was seen"))
    );
    let looked = doctor(&place, &["--no-run"], &[text(&job)]).well().json();
    assert_eq!(
        (&looked["ran"], &looked["status"]),
        (&false.into(), &Value::Null)
    );
}

#[test]
fn one_that_does_not_come_to_an_end_is_ended() {
    let place = Place::new();
    let finished = doctor(&place, &["--timeout", "1s"], &["tail", "-f", "/dev/null"]);
    assert_eq!(finished.code(), 1, "{}", finished.err);
    assert_eq!(finished.json()["status"], 143);
    let calls = check(&finished.json(), "calls");
    assert!(
        calls["mend"]
            .as_str()
            .is_some_and(|mend| mend.contains("--timeout")),
        "{calls}"
    );
}

#[test]
fn a_static_program() {
    let library = Command::new("cc").arg("-print-file-name=libc.a").output();
    let library = library.ok().filter(|said| said.stdout.starts_with(b"/"));
    if deps::needed(library, "no static C library").is_none() {
        return;
    }
    let place = Place::new();
    for (name, option) in [("static", "-static"), ("static-pie", "-static-pie")] {
        let job = quiet(&place, name, &[option]);
        refused(&place, &[text(&job)], "is a static program");
        warned(&place, &[text(&job)], "is a static program", 7);
    }
}

#[test]
fn a_program_for_musl() {
    let place = Place::new();
    let option = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    let job = quiet(&place, "musl", &[option]);
    refused(&place, &[text(&job)], "is a program for musl");
}

#[test]
fn a_setuid_program() {
    let place = Place::new();
    let job = quiet(&place, "setuid", &[]);
    let is_root = fs::metadata(&job).expect("our own file").uid() == 0;
    if deps::needed(
        is_root.then_some(()),
        "not root, who alone may give a file away",
    )
    .is_none()
    {
        return;
    }
    // The program's own folder and file must be open to the other user.
    fs::set_permissions(place.path(""), Permissions::from_mode(0o755)).expect("our own folder");
    let own = Permissions::from_mode(0o4755);
    fs::set_permissions(&job, own.clone()).expect("our own file");
    // Setuid to who runs it: nothing is gained, and the loader is not told to be careful.
    let report = doctor(&place, &["--no-run"], &[text(&job)]).well().json();
    assert_eq!(check(&report, "program")["ok"], true);
    chown(&job, Some(NOBODY), None).expect("root may");
    fs::set_permissions(&job, own).expect("root may");
    let careful = finish(&mut place.plain(&job)).code() == 8;
    if deps::needed(
        careful.then_some(()),
        "temporary files lie where setuid does not count",
    )
    .is_none()
    {
        return;
    }
    refused(&place, &[text(&job)], "is setuid to user 65534");
    warned(&place, &[text(&job)], "is setuid to user 65534", 8);
}

#[test]
fn a_program_for_another_machine() {
    // An ELF header of 52 bytes: 32 bits, little-endian, version 1; an executable (2) for the 386 (3).
    let mut header = [0_u8; 52];
    header[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    header[16] = 2;
    header[18] = 3;
    header[20] = 1;
    let place = Place::new();
    let job = executable(&place, "job32", &header);
    refused(
        &place,
        &[text(&job)],
        "is a program for 32-bit x86, the recorder one for",
    );
    warned(&place, &[text(&job)], "32-bit x86", 126);
}

#[test]
fn what_cannot_be_run_at_all() {
    let place = Place::new();
    refused(
        &place,
        &["no-such-program-here"],
        "was not found: no folder in PATH",
    );
    refused(
        &place,
        &["/no/such"],
        "was not found: there is no such file",
    );
    let script = place.path("train.sh");
    fs::write(&script, "#!/bin/sh\nexit 0\n").expect("a new file");
    fs::set_permissions(&script, Permissions::from_mode(0o644)).expect("our own file");
    refused(&place, &[text(&script)], "may not be executed");
    let orphan = executable(&place, "orphan", b"#!/no/such/python\n");
    refused(&place, &[text(&orphan)], "is to be run by /no/such/python");
    let nothing = executable(&place, "nothing", b"exit 0\n");
    refused(&place, &[text(&nothing)], "neither a program nor a script");
    refused(&place, &[text(&place.path(""))], "is a folder");
}

#[test]
fn a_container_and_other_far_places() {
    let place = Place::new();
    let program = refused(
        &place,
        &["docker", "run", "image", "python"],
        "in a container",
    );
    let line = program["line"].as_str().expect("a line to use");
    assert!(line.starts_with("docker run --gpus all -v "), "{line}");
    assert!(line.contains("gpumem run"), "{line}");
    refused(
        &place,
        &["bash", "-c", "exec docker run image"],
        "in a container",
    );
    refused(
        &place,
        &["env", "-i", "python"],
        "env takes LD_PRELOAD away",
    );
    refused(&place, &["ssh", "host", "python"], "on another machine");
    // Whether it is there or not.
    let mut run = place.gpumem(&["run", "docker", "run", "image"]);
    let finished = finish(run.env("PATH", "/no/such"));
    assert_eq!(finished.code(), 127);
    assert!(
        finished
            .err
            .starts_with("gpumem: warning: docker starts its program in a container"),
        "{}",
        finished.err
    );
}

#[test]
fn a_python_whose_frames_are_not_read() {
    let Some(old) = python::interpreter(10) else {
        return;
    };
    let place = Place::new();
    let script = format!("#!{}\nprint('ran')\n", old.display());
    let script = executable(&place, "train.py", script.as_bytes());
    for command in [&[text(&old), "-c", "print('ran')"][..], &[text(&script)]] {
        let finished = doctor(&place, &["--no-run"], command);
        assert_eq!(finished.code(), 1);
        let found = check(&finished.json(), "python");
        assert_eq!(found["ok"], false);
        assert!(
            found["found"]
                .as_str()
                .is_some_and(|said| said.starts_with("Python 3.10: ")),
            "{found}"
        );
        warned(&place, command, "the frames of Python 3.10 are not read", 0);
    }
}

#[test]
fn a_python_that_only_running_it_shows() {
    let Some(old) = python::interpreter(10) else {
        return;
    };
    let place = Place::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/one.py");
    let line = format!("{} {}; exit 0", old.display(), script.display());
    let finished = doctor(&place, &[], &["sh", "-c", &line]);
    assert_eq!(finished.code(), 1, "{}", finished.err);
    let report = finished.json();
    assert_eq!(check(&report, "calls")["ok"], true, "{report:#}");
    assert_eq!(check(&report, "python")["ok"], false, "{report:#}");
}

#[test]
fn no_driver_and_a_stub_of_one() {
    let place = Place::without_driver();
    let finished = finish(&mut place.gpumem(&["doctor", "--json"]));
    let report = finished.json();
    let driver = check(&report, "driver");
    let absent = driver["found"]
        .as_str()
        .is_some_and(|found| found.starts_with("no libcuda.so.1"));
    if deps::needed(absent.then_some(()), "this machine has a driver").is_some() {
        assert_eq!(finished.code(), 1);
        let run = finish(&mut place.gpumem(&["run", "true"])).well();
        assert!(
            run.err.contains("note: no libcuda.so.1 is found"),
            "{}",
            run.err
        );
    }
    let folder = place.path("stubs");
    fs::create_dir(&folder).expect("a new folder");
    let stub = quiet(&place, "stubs/libcuda.so", &["-shared", "-fPIC"]);
    let place = Place::on(&stub);
    let finished = finish(&mut place.gpumem(&["doctor", "--json"]));
    assert_eq!(finished.code(), 1);
    let driver = check(&finished.json(), "driver");
    assert!(
        driver["found"]
            .as_str()
            .is_some_and(|found| found.contains("is a stub")),
        "{driver}"
    );
}

#[test]
fn what_the_environment_hides() {
    let place = Place::new();
    for (name, value, found) in [
        ("GPUMEM_MODE", "off", "mode"),
        ("CUDA_VISIBLE_DEVICES", "", "visible"),
        ("GPUMEM_SHIM", "/no/such.so", "recorder"),
        ("GPUMEM_SHIM", "/etc/passwd", "recorder"),
    ] {
        let mut command = place.gpumem(&["doctor", "--json"]);
        let finished = finish(command.env(name, value));
        assert_eq!(finished.code(), 1, "{name}={value}");
        let check = check(&finished.json(), found);
        assert_eq!(
            (&check["ok"], check["mend"].is_null()),
            (&false.into(), false),
            "{check}"
        );
    }
}

#[test]
fn a_command_line_that_is_wrong() {
    let place = Place::new();
    for arguments in [
        &["doctor", "--nonsense"][..],
        &["doctor", "true"],
        &["doctor", "--timeout", "soon", "--", "true"],
    ] {
        assert_eq!(
            finish(&mut place.gpumem(arguments)).code(),
            2,
            "{arguments:?}"
        );
    }
}
