//! What a reader must know before he trusts the figures: one clear line each.

use std::collections::BTreeSet;

use gpumem_collector::insight::caveats::caveats;
use gpumem_collector::model::Session;

use super::WIDTH;
use super::text::{clean, wrap};

/// The notes of a session, or nothing.
pub(crate) fn notes(session: &Session) -> String {
    // Many ranks say the same: once is enough.
    let mut lines: BTreeSet<String> = session.processes.iter().flat_map(caveats).collect();
    if session.truncated {
        lines.insert("the recording ends in the middle: its writer was stopped".into());
    }
    lines.extend(session.notes.iter().cloned());
    lines
        .iter()
        .map(|line| format!("note: {}\n", wrap(&clean(line), 6, WIDTH)))
        .collect()
}
