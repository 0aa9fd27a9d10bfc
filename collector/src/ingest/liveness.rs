//! Whether a recorded process still runs here.

use std::fs;

use gpumem_wire::define::ProcessDefinition;
use std::os::unix::fs::MetadataExt;

/// What this host says of a recorded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs.
    Running,
    /// It does not run any more.
    Gone,
    /// It was on another host, or in a pid namespace that cannot be seen from here.
    Unknown,
}

/// Asks `/proc`. A process is the same if its pid has the same start time on the same boot of the same host.
pub fn liveness(process: &ProcessDefinition) -> Liveness {
    let here = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if here.trim() != process.boot_id || process.boot_id.is_empty() {
        return Liveness::Unknown;
    }
    let namespace = fs::metadata("/proc/self/ns/pid").map(|metadata| metadata.ino());
    if namespace.ok() != Some(process.pid_namespace) {
        return Liveness::Unknown;
    }
    let Ok(stat) = fs::read_to_string(format!("/proc/{}/stat", process.pid)) else {
        return Liveness::Gone;
    };
    match state_and_start(&stat) {
        Some((state, start)) if start == process.start_ticks && !matches!(state, 'Z' | 'X') => {
            Liveness::Running
        }
        _ => Liveness::Gone,
    }
}

/// Fields 3 and 22 of `/proc/PID/stat`. Field 2, the command in parentheses, may hold anything, also a parenthesis.
fn state_and_start(stat: &str) -> Option<(char, u64)> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The definition of this very process.
    pub(crate) fn myself() -> ProcessDefinition {
        let stat = fs::read_to_string("/proc/self/stat").expect("/proc");
        ProcessDefinition {
            host: "here".into(),
            boot_id: fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .expect("/proc")
                .trim()
                .into(),
            pid_namespace: fs::metadata("/proc/self/ns/pid").expect("/proc").ino(),
            pid: std::process::id(),
            start_ticks: state_and_start(&stat).expect("a stat line").1,
            ..ProcessDefinition::default()
        }
    }

    #[test]
    fn this_process_runs_and_its_like_do_not() {
        let me = myself();
        assert_eq!(liveness(&me), Liveness::Running);
        let former = ProcessDefinition {
            start_ticks: me.start_ticks + 1,
            ..me.clone()
        };
        assert_eq!(liveness(&former), Liveness::Gone);
        let elsewhere = ProcessDefinition {
            boot_id: "another".into(),
            ..me
        };
        assert_eq!(liveness(&elsewhere), Liveness::Unknown);
    }

    #[test]
    fn a_command_with_parentheses_hides_nothing() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 999 20";
        assert_eq!(state_and_start(stat), Some(('S', 999)));
        assert_eq!(state_and_start("7 (a"), None);
    }
}
