//! The first line of each report: command, host, ranks, age, running or ended.

use std::time::{SystemTime, UNIX_EPOCH};

use gpumem_collector::insight::who;
use gpumem_collector::model::{Process, Session, State};

use super::WIDTH;
use super::size::{many, span};
use super::text::{clean, cut};

/// Characters of the command that are shown at least.
const COMMAND: usize = 16;

/// The first line of a report on a session; `now_ns` is the present in nanoseconds since the epoch.
pub(crate) fn heading(session: &Session, now_ns: u64) -> String {
    let Some(first) = session.processes.first() else {
        return "no process made a CUDA call\n".into();
    };
    let mut facts = Vec::new();
    if let Some(device) = who::simulated(first) {
        facts.push(format!("simulated {}", cut(&clean(&device), 12)));
    }
    let processes = session.processes.len();
    let ranks = ranks(&session.processes);
    facts.extend(named(&ranks));
    if processes > 1 && ranks.len() != processes {
        facts.push(many(processes as u64, "process"));
    }
    let began_ns = session
        .processes
        .iter()
        .map(|process| process.definition().started_ns)
        .min()
        .unwrap_or(now_ns);
    facts.push(format!(
        "began {} ago",
        span(now_ns.saturating_sub(began_ns) / 1_000_000_000)
    ));
    facts.push(state(&session.processes).into());
    let facts = facts.join(", ");
    // Of a long host name the beginning tells which it is; how the session fares is never cut.
    let room = WIDTH.saturating_sub(facts.chars().count() + COMMAND + 4);
    let host = cut(&clean(&first.definition().host), room.max(8));
    let facts = if host.is_empty() {
        facts
    } else {
        format!("{host}, {facts}")
    };
    let room = WIDTH.saturating_sub(facts.chars().count() + 2).max(COMMAND);
    let command = cut(&clean(&who::command(first)), room);
    format!("{}\n", cut(&format!("{command}  {facts}"), WIDTH))
}

/// The present in nanoseconds since the epoch.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

/// The ranks in order, each once.
fn ranks(processes: &[Process]) -> Vec<u32> {
    let mut ranks: Vec<u32> = processes.iter().filter_map(who::rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// `rank 3`, `ranks 0..7`, and with gaps how many there are.
fn named(ranks: &[u32]) -> Option<String> {
    match *ranks {
        [] => None,
        [one] => Some(format!("rank {one}")),
        [first, .., last] if (last - first) as usize + 1 == ranks.len() => {
            Some(format!("ranks {first}..{last}"))
        }
        [first, .., last] => Some(format!("{} ranks of {first}..{last}", ranks.len())),
    }
}

fn state(processes: &[Process]) -> &'static str {
    let any = |state: State| processes.iter().any(|process| process.state() == state);
    if any(State::Running) {
        "running"
    } else if any(State::Killed) {
        "killed"
    } else if any(State::Unknown) {
        "not known whether it runs"
    } else {
        "ended"
    }
}
