//! The first line of each report: command, host, ranks, age, running or ended.

use std::time::{SystemTime, UNIX_EPOCH};

use gpumem_collector::insight::who;
use gpumem_collector::model::{Process, Session, State};

use super::WIDTH;
use super::size::{many, span};
use super::text::{clean, cut};

/// The first line of a report on a session; `now_ns` is the present in nanoseconds since the epoch.
pub(crate) fn heading(session: &Session, now_ns: u64) -> String {
    let Some(first) = session.processes.first() else {
        return "no process made a CUDA call\n".into();
    };
    let mut facts = vec![clean(&first.definition().host)];
    if let Some(ranks) = ranks(&session.processes) {
        facts.push(ranks);
    }
    let processes = session.processes.len() as u64;
    if processes > 1 {
        facts.push(many(processes, "process"));
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
    facts.retain(|fact| !fact.is_empty());
    let facts = facts.join(", ");
    let room = WIDTH.saturating_sub(facts.chars().count() + 2).max(16);
    format!("{}  {facts}\n", cut(&clean(&who::command(first)), room))
}

/// The present in nanoseconds since the epoch.
pub(crate) fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| u64::try_from(since.as_nanos()).ok())
        .unwrap_or(0)
}

fn ranks(processes: &[Process]) -> Option<String> {
    let mut ranks: Vec<u32> = processes.iter().filter_map(who::rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    match ranks[..] {
        [] => None,
        [one] => Some(format!("rank {one}")),
        [first, .., last] => Some(format!("ranks {first}..{last} ({} of them)", ranks.len())),
    }
}

fn state(processes: &[Process]) -> &'static str {
    let any = |state: State| processes.iter().any(|process| process.state() == state);
    if any(State::Running) {
        State::Running.name()
    } else if any(State::Killed) {
        State::Killed.name()
    } else {
        State::Ended.name()
    }
}
