//! The ten lines that `gpumem run` ends with: an out-of-memory first, then leaks, then what was used.

use std::collections::{BTreeMap, HashMap};
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
    let all = distinct(report);
    let directory = session
        .processes
        .first()
        .map_or("", |process| process.definition().directory.as_str());
    lines.extend(all.iter().take(LEAKS).map(|(leak, times)| {
        let times = if *times > 1 {
            format!(" ({times}x)")
        } else {
            String::new()
        };
        let room = WIDTH - 8 - times.len();
        format!("{}{times}", verdict_line(leak, style, directory, room))
    }));
    if all.len() > LEAKS {
        lines.push(many((all.len() - LEAKS) as u64, "more leak"));
    }
    if all.is_empty() {
        lines.push(style.fine("no leak found"));
    }
    lines.extend(used(report, (LINES - 2).saturating_sub(lines.len())));
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

/// The leaks, the fastest first. The same at one line in several processes or on several devices is one, with how often.
fn distinct(report: &LeaksReport) -> Vec<(&Leak, usize)> {
    let mut all: Vec<(&Leak, usize)> = Vec::new();
    let mut known = HashMap::new();
    for leak in report.processes.iter().flat_map(|row| &row.leaks) {
        // What has no site cannot be told to be the same.
        let number = leak.site.is_none().then_some(all.len());
        let key = (leak.kind, leak.layer, leak.clock, &leak.site, number);
        let index = *known.entry(key).or_insert(all.len());
        match all.get_mut(index) {
            Some((worst, times)) => {
                *times += 1;
                if leak.bytes_per_step > worst.bytes_per_step {
                    *worst = leak;
                }
            }
            None => all.push((leak, 1)),
        }
    }
    all.sort_by_key(|(leak, _)| std::cmp::Reverse(leak.bytes_per_step));
    all
}

/// What all processes held of a device, or of several.
#[derive(Clone, Copy, Default)]
struct Used {
    peak: u64,
    left: u64,
    processes: u64,
}

/// A line per device with what all processes held of it; those beyond `lines` are one line.
fn used(report: &LeaksReport, lines: usize) -> Vec<String> {
    let mut devices: BTreeMap<(String, i16), Used> = BTreeMap::new();
    for row in &report.processes {
        let Some(device) = row.device else { continue };
        let used = devices.entry((row.host.clone(), device)).or_default();
        used.peak = used.peak.saturating_add(row.peak_bytes);
        let left = row.live_at_exit_bytes.unwrap_or(row.live_bytes);
        used.left = used.left.saturating_add(left);
        used.processes += 1;
    }
    let named = if devices.len() > lines {
        lines.saturating_sub(1)
    } else {
        lines
    };
    let mut out: Vec<String> = devices
        .iter()
        .take(named)
        .map(|((_, device), used)| {
            format!(
                "device {device}: peak {}, at exit {}, {}",
                size(used.peak),
                size(used.left),
                many(used.processes, "process")
            )
        })
        .collect();
    let rest = || devices.values().skip(named);
    if rest().next().is_some() {
        let peak = rest().map(|used| used.peak).max().unwrap_or(0);
        let left = rest().fold(0u64, |sum, used| sum.saturating_add(used.left));
        out.push(format!(
            "{}: peak at most {} each, at exit {} in all",
            many(rest().count() as u64, "more device"),
            size(peak),
            size(left)
        ));
    }
    out
}
