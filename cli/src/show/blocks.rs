//! The tables of the largest live blocks.

use gpumem_collector::insight::blocks::{BlocksReport, Born, GroupRow, ProcessBlocks};

use gpumem_collector::model::Layer;

use super::WIDTH;
use super::leaks::place;
use super::size::{count, many, size, span, span_ns};
use super::table::{Align, table};
use super::text::clean;

/// Characters of a place that are shown, before the table cuts its last column.
const PLACE: usize = WIDTH / 2;

/// The tables, without the first line of the report. `directory`: that of a row's process.
pub(crate) fn blocks<'a>(
    report: &'a BlocksReport,
    directory: impl Fn(&'a ProcessBlocks) -> &'a str,
) -> String {
    if report.processes.is_empty() {
        return "\nNo live memory.\n".into();
    }
    report
        .processes
        .iter()
        .map(|row| one(row, directory(row)))
        .collect()
}

fn one(process: &ProcessBlocks, directory: &str) -> String {
    let mut who = vec![format!("pid {}", process.pid)];
    who.extend(process.rank.map(|rank| format!("rank {rank}")));
    who.push(match (process.device, process.host_memory) {
        (Some(device), _) => format!("device {device}"),
        (None, true) => "host memory".into(),
        (None, false) => "device unknown".into(),
    });
    let state = if process.at_exit { "at exit" } else { "live" };
    let blocks = many(process.live_blocks, "block");
    who.push(format!("{state} {} in {blocks}", size(process.live_bytes)));
    let mut columns = vec![
        ("BLOCKS", Align::Right),
        ("SIZE", Align::Right),
        ("AGE", Align::Right),
    ];
    if process.step.is_some() {
        columns.push(("STEPS", Align::Right));
    }
    columns.push(("WHAT", Align::Left));
    columns.push(("WHERE", Align::Left));
    let rows: Vec<Vec<String>> = process
        .groups
        .iter()
        .map(|group| {
            let mut row = vec![blocks_of(group), size(group.size), age(process, group)];
            if let Some(step) = process.step {
                row.push(steps(step, group.oldest));
            }
            row.push(what(group).into());
            row.push(match (&group.site, &group.operator) {
                (Some(site), _) => place(site, directory, PLACE),
                (None, Some(operator)) => format!("torch: {}", clean(operator)),
                (None, None) => "(no line is known)".into(),
            });
            row
        })
        .collect();
    let mut out = format!("\n{}\n{}", who.join("  "), table(&columns, &rows));
    if process.left_out_groups > 0 {
        out.push_str(&format!(
            "({} smaller: --top)\n",
            many(process.left_out_groups, "line")
        ));
    }
    out
}

/// What a framework's blocks are to the program; of other memory, which it is.
fn what(group: &GroupRow) -> &str {
    if group.layer == Layer::TorchBlock.name() {
        group.category.name()
    } else {
        group.layer
    }
}

/// `12 x`, so that it reads on as `12 x 4.00 MiB`; nothing for a single one.
fn blocks_of(group: &GroupRow) -> String {
    if group.blocks == 1 {
        String::new()
    } else {
        format!("{} x", count(group.blocks))
    }
}

/// How old a group's blocks are, at most.
fn age(process: &ProcessBlocks, group: &GroupRow) -> String {
    let oldest_ns = process.time_ns.saturating_sub(group.oldest.time_ns);
    if oldest_ns < 60_000_000_000 {
        span_ns(oldest_ns)
    } else {
        span(oldest_ns / 1_000_000_000)
    }
}

fn steps(now: u32, born: Born) -> String {
    born.step.map_or_else(
        || "-".into(),
        |born| count(u64::from(now.saturating_sub(born))),
    )
}
