//! What a reader must know before he trusts the figures: one clear line each.

use std::collections::BTreeSet;

use gpumem_collector::insight::caveats::caveats;
use gpumem_collector::model::Session;

use super::WIDTH;
use super::text::{clean, wrap};

/// The notes of a session, or nothing.
pub(crate) fn notes(session: &Session) -> String {
    text(&sentences(session))
}

/// The same as sentences, without an end mark.
pub(crate) fn sentences(session: &Session) -> Vec<String> {
    // Many ranks say the same: once is enough.
    let mut lines: BTreeSet<String> = session.processes.iter().flat_map(caveats).collect();
    if session.truncated {
        lines.insert("the recording ends in the middle: its writer was stopped".into());
    }
    lines.extend(session.notes.iter().cloned());
    lines.into_iter().collect()
}

/// Sentences as lines.
pub(crate) fn text(sentences: &[String]) -> String {
    sentences
        .iter()
        .map(|line| format!("note: {}\n", wrap(&clean(line), 6, WIDTH)))
        .collect()
}
