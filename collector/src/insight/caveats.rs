//! What a reader must know before he trusts the figures of a process: a sentence each.

use gpumem_wire::define::PythonStatus;

use crate::insight::size::size;
use crate::model::Process;
use crate::model::selfcheck::SelfCheck;

/// The sentences, without an end mark. None: nothing stands against the figures.
pub fn caveats(process: &Process) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(process.python().and_then(python));
    out.extend(lost(process));
    for (device, checks) in process.checks() {
        for (what, check) in [("live", &checks.allocated), ("reserved", &checks.reserved)] {
            out.extend(disagreement(process, device.0, what, check));
        }
    }
    out.extend(process.definitions().notices().iter().cloned());
    out
}

fn python(status: PythonStatus) -> Option<String> {
    match status {
        PythonStatus::Absent | PythonStatus::Supported { .. } => None,
        PythonStatus::Unsupported { major, minor } => Some(format!(
            "Python frames could not be read: Python {major}.{minor} is not known; lines are native ones. Run the program with Python 3.11 to 3.13 to see its own lines"
        )),
        PythonStatus::Mismatch { major, minor } => Some(format!(
            "Python frames could not be read: this Python {major}.{minor} is laid out otherwise than expected (a debug \
             build?); lines are native ones"
        )),
    }
}

fn lost(process: &Process) -> Option<String> {
    let lost = process.lost();
    let from = lost.since_ns?;
    let seconds = from.saturating_sub(process.definition().started_ns) as f64 / 1e9;
    (lost.total() > 0).then(|| {
        format!(
            "{} events of process {} were lost ({} allocations, {} frees): from {seconds:.1} s on its figures are inexact",
            lost.total(),
            process.definition().pid,
            lost.allocations,
            lost.frees
        )
    })
}

fn disagreement(process: &Process, device: i16, what: &str, check: &SelfCheck) -> Option<String> {
    let first = check.first?;
    let apart = (i128::from(first.torch_bytes) - first.our_bytes).unsigned_abs();
    let apart = size(u64::try_from(apart).unwrap_or(u64::MAX));
    (check.mismatches > 0).then(|| {
        format!(
            "torch's own {what} bytes on device {device} of process {} differ from ours at {} of {} events, at first by {apart}",
            process.definition().pid,
            check.mismatches,
            check.checks
        )
    })
}

#[cfg(test)]
mod tests {
    use gpumem_wire::Definition;

    use super::*;
    use crate::model::testing::{MIB, Trace, block, gap};

    #[test]
    fn a_clean_process_has_none() {
        let mut trace = Trace::new();
        trace.push(block(0x1000, MIB).at("train.py:1"));
        assert_eq!(caveats(&trace.process()), Vec::<String>::new());
    }

    #[test]
    fn what_stands_against_the_figures_is_said_once_each() {
        let mut trace = Trace::new();
        trace.define(Definition::Python(PythonStatus::Unsupported {
            major: 3,
            minor: 16,
        }));
        trace.push(block(0x1000, MIB).at("train.py:1"));
        trace.events_mut()[0].words[2] += 512;
        trace.push(gap(3, 0));
        let said = caveats(&trace.process());
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[0].contains("Python 3.16"));
        assert!(said[1].starts_with("3 events of process 4711 were lost"));
        assert!(said[2].contains("1 of 1 events, at first by 512 B"));
    }
}
