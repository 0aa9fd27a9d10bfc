//! What was seen of a program once it ran under the shim.

use std::time::Duration;

use gpumem_collector::insight::caveats::caveats;
use gpumem_collector::model::{Process, PythonStatus};

use super::python::Version;
use super::{Check, driver, read};
use crate::run::Outcome;
use crate::show::size::{count, many, span};

/// Adds what was seen, and corrects what could only be guessed before.
pub(crate) fn seen(checks: &mut Vec<Check>, outcome: &Outcome, timeout: Duration) {
    let processes: Vec<&Process> = outcome
        .session
        .processes
        .iter()
        .filter(|process| process.events() > 0)
        .collect();
    if !processes.is_empty() {
        checks.iter_mut().for_each(driver::was_found);
    }
    let is_explained = checks
        .iter()
        .any(|check| !check.ok && check.name != "python");
    let mut found = vec![calls(&processes, outcome, timeout, is_explained)];
    // Many ranks say the same: once is enough.
    for check in processes.into_iter().flat_map(notes) {
        if found.iter().all(|said| said.found != check.found) {
            found.push(check);
        }
    }
    // A Python that was known by its name alone gives way to what the program itself showed.
    if found.iter().any(|check| check.name == "python") {
        checks.retain(|check| check.name != "python");
    }
    checks.append(&mut found);
}

fn calls(
    processes: &[&Process],
    outcome: &Outcome,
    timeout: Duration,
    is_explained: bool,
) -> Check {
    const NAME: &str = "calls";
    let span = span(timeout.as_secs());
    let ended = outcome.code.map_or_else(
        || "it ended".into(),
        |code| format!("it ended with status {code}"),
    );
    if !processes.is_empty() {
        let events: u64 = processes.iter().map(|process| process.events()).sum();
        let found = format!(
            "seen: {} memory events of {}",
            count(events),
            many(processes.len() as u64, "process")
        );
        return Check::ok(
            NAME,
            match outcome.timed_out {
                true => format!("{found}; it was ended after {span}"),
                false => format!("{found}; {ended}"),
            },
        );
    }
    if is_explained {
        let found = format!("no CUDA call was seen; {ended}");
        return Check::fail(NAME, found, "Mend first what is said above".into());
    }
    if outcome.timed_out {
        return Check::fail(
            NAME,
            format!("no CUDA call was seen in {span}; then it was ended"),
            "If it takes longer to reach the GPU, give it more: --timeout 10min".into(),
        );
    }
    if outcome.failed {
        return Check::fail(
            NAME,
            format!("no CUDA call was seen; {ended}"),
            "See what it said above: it failed before it used the GPU".into(),
        );
    }
    Check::fail(
        NAME,
        format!("no CUDA call was seen; {ended}"),
        "Does it use the GPU at all (torch.cuda.is_available())? If so, it hands its work to a program without \
         LD_PRELOAD: a daemon, a container, one started by env -i"
            .into(),
    )
}

/// What stands against the figures of a process.
fn notes(process: &Process) -> Vec<Check> {
    let version = |major, minor| Version::new(u32::from(major), u32::from(minor));
    let python = match process.python() {
        None | Some(PythonStatus::Absent) => None,
        Some(
            PythonStatus::Supported { major, minor } | PythonStatus::Unsupported { major, minor },
        ) => Some(read(&version(major, minor))),
        Some(PythonStatus::Mismatch { major, minor }) => Some(Check::fail(
            "python",
            format!(
                "this {} is laid out otherwise than expected: its frames are not read",
                version(major, minor)
            ),
            "Run the program with a common build of Python, not a debug or free-threaded one"
                .into(),
        )),
    };
    let of_python = python.is_some();
    let others = caveats(process)
        .into_iter()
        .filter(|said| !(of_python && said.starts_with("Python frames")))
        .map(|said| Check::note("figures", said));
    python.into_iter().chain(others).collect()
}
