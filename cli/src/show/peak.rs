//! What was held at a moment, for a person: by what it is, and by whose line.

use gpumem_collector::insight::leaks::SiteRow;
use gpumem_collector::insight::peak::{CategoryRow, HolderRow, Part, When};

use super::WIDTH;
use super::leaks::place;
use super::size::{count, many, size, span_ns};
use super::table::{Align, table};
use super::text::{clean, cut};

/// Characters of a size and of the name of a category, with the blanks behind them.
const SIZE: usize = 10;
const CATEGORY: usize = 17;
/// Lines within one line that are shown, each of at least a twentieth of it.
const WITHIN: usize = 4;
const WITHIN_SHARE: u64 = 20;
/// Characters of a line's text below which it says nothing.
const LEAST_TEXT: usize = 12;

/// When something was: `in step 2, backward pass (MmBackward0), 3.1 s after the start`.
pub(crate) fn when(when: &When) -> String {
    let mut facts = Vec::new();
    if let Some(step) = when.step.filter(|step| *step > 0) {
        facts.push(format!("in step {}", count(step)));
    }
    let operator = when
        .operator
        .as_deref()
        .map(|name| format!(" ({})", clean(name)))
        .unwrap_or_default();
    match when.part {
        Some(Part::Forward) => facts.push(format!("before its backward pass{operator}")),
        Some(Part::Backward) => facts.push(format!("in its backward pass{operator}")),
        Some(Part::Optimizer) => facts.push(format!("in the optimizer{operator}")),
        None => {}
    }
    facts.extend(
        when.phase
            .as_deref()
            .map(|phase| format!("in phase {}", clean(phase))),
    );
    facts.push(format!("{} after the start", span_ns(when.after_ns)));
    facts.join(", ")
}

/// The line of a site with its text under it, each after `indent` blanks.
pub(crate) fn line(site: &SiteRow, directory: &str, indent: usize) -> String {
    let mut out = format!("{:indent$}{}\n", "", place(site, directory, WIDTH - indent));
    if let Some(text) = site.text.as_deref() {
        let text = cut(clean(text.trim()).as_str(), WIDTH - indent - 4);
        out.push_str(&format!("{:1$}{text}\n", "", indent + 4));
    }
    out
}

/// A place, and as much of its line's text as there is room for.
fn with_text(site: &SiteRow, directory: &str, room: usize) -> String {
    let place = place(site, directory, room);
    let left = room.saturating_sub(place.chars().count() + 2);
    match site.text.as_deref().map(|text| clean(text.trim())) {
        Some(text) if left >= LEAST_TEXT && !text.is_empty() => {
            format!("{place}  {}", cut(&text, left))
        }
        _ => place,
    }
}

/// The table of categories.
pub(crate) fn categories(rows: &[CategoryRow]) -> String {
    let all: u64 = rows.iter().map(|row| row.bytes).sum();
    let columns = [
        ("BYTES", Align::Right),
        ("SHARE", Align::Right),
        ("BLOCKS", Align::Right),
        ("WHAT", Align::Left),
    ];
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            vec![
                format!("{:>9}", size(row.bytes)),
                share(row.bytes, all),
                count(row.blocks),
                row.category.name().into(),
            ]
        })
        .collect();
    table(&columns, &rows)
}

/// A part of a whole in percent; what is there is never 0%.
pub(crate) fn share(part: u64, all: u64) -> String {
    let percent = u128::from(part) * 100 / u128::from(all.max(1));
    match percent {
        0 if part > 0 => "<1%".into(),
        percent => format!("{percent}%"),
    }
}

/// The largest holders, each with the lines within that made most of it; `top`: how many.
pub(crate) fn holders(rows: &[HolderRow], top: usize, directory: &str) -> String {
    let mut out = format!("{:>9}  {:<15}  WHERE\n", "BYTES", "WHAT");
    let room = WIDTH - SIZE - 1 - CATEGORY;
    for row in rows.iter().take(top) {
        let name = match (&row.site, &row.operator) {
            (Some(site), _) => with_text(site, directory, room),
            (None, Some(operator)) => cut(&format!("torch: {}", clean(operator)), room),
            (None, None) => "(no name is known of its line)".into(),
        };
        out.push_str(&format!(
            "{:>9}  {:<15}  {name}\n",
            size(row.bytes),
            row.category.name()
        ));
        let named = row
            .within
            .iter()
            .take(WITHIN)
            .filter(|inner| inner.bytes >= row.bytes / WITHIN_SHARE);
        for inner in named {
            // Of a package the file's name is enough.
            let file = inner.site.file.as_deref().unwrap_or("");
            let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let line = place(&inner.site, folder, room - 13);
            let text = format!("{:>9} at {line}", size(inner.bytes));
            out.push_str(&format!("{:1$}{text}\n", "", SIZE + 1 + CATEGORY));
        }
    }
    if rows.len() > top {
        let rest: u64 = rows.iter().skip(top).map(|row| row.bytes).sum();
        out.push_str(&format!(
            "{:>9}  in {} (--top {})\n",
            size(rest),
            many((rows.len() - top) as u64, "more line"),
            rows.len()
        ));
    }
    out
}
