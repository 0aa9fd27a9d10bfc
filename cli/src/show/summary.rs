//! The ten lines that `gpumem run` ends with: an out-of-memory first, then leaks, then what was used.

use std::collections::BTreeMap;
use std::path::Path;

use gpumem_collector::insight::leaks::{Leak, LeaksReport};
use gpumem_collector::insight::oom;
use gpumem_collector::model::Session;

use super::WIDTH;
use super::colour::Style;
use super::leaks::verdict_line;
use super::size::{many, size};
use super::text::{clean, cut};

/// Lines at most.
const LINES: usize = 10;
/// Leaks that are named.
const LEAKS: usize = 4;

/// The summary of a session that has ended. `capture`: where it was kept.
pub(crate) fn summary(
    session: &Session,
    report: &LeaksReport,
    capture: Option<&Path>,
    style: Style,
) -> String {
    let mut lines = out_of_memory(session, style);
    let mut all: Vec<&Leak> = report.processes.iter().flat_map(|row| &row.leaks).collect();
    all.sort_by_key(|leak| std::cmp::Reverse(leak.bytes_per_step));
    let directory = session
        .processes
        .first()
        .map_or("", |process| process.definition().directory.as_str());
    lines.extend(
        all.iter()
            .take(LEAKS)
            .map(|leak| verdict_line(leak, style, directory, WIDTH - 8)),
    );
    if all.len() > LEAKS {
        lines.push(many((all.len() - LEAKS) as u64, "more leak"));
    }
    if all.is_empty() {
        lines.push(style.fine("no leak found"));
    }
    lines.extend(used(report));
    let kept = capture.map(|path| {
        let path = clean(&path.display().to_string());
        format!("recorded in {path}\ngpumem: explain it with: gpumem leaks {path}")
    });
    lines.truncate(LINES - 2);
    lines.extend(kept);
    lines
        .iter()
        .map(|line| format!("gpumem: {line}\n"))
        .collect()
}

fn out_of_memory(session: &Session, style: Style) -> Vec<String> {
    let mut lines = Vec::new();
    for last in session.processes.iter().filter_map(oom::last) {
        let at = last
            .site
            .and_then(|site| {
                let file = site.file?;
                let name = file.rsplit('/').next().unwrap_or(&file).to_owned();
                Some(format!(" at {name}:{}", site.line?))
            })
            .unwrap_or_default();
        let text = format!(
            "OUT OF MEMORY: {} asked for{}, with {} in use and {} reserved",
            size(last.requested_bytes),
            clean(&at),
            size(last.live_bytes),
            size(last.reserved_bytes)
        );
        lines.push(style.alarm(&cut(&text, WIDTH - 8)));
    }
    lines.truncate(2);
    lines
}

/// A line per device with what all processes held of it.
fn used(report: &LeaksReport) -> Vec<String> {
    let mut devices: BTreeMap<(String, i16), (u64, u64, u64)> = BTreeMap::new();
    for row in &report.processes {
        let Some(device) = row.device else { continue };
        let sum = devices.entry((row.host.clone(), device)).or_default();
        sum.0 += row.peak_bytes;
        sum.1 += row.live_at_exit_bytes.unwrap_or(row.live_bytes);
        sum.2 += 1;
    }
    devices
        .into_iter()
        .map(|((_, device), (peak, left, processes))| {
            format!(
                "device {device}: peak {}, at exit {}, {}",
                size(peak),
                size(left),
                many(processes, "process")
            )
        })
        .collect()
}
