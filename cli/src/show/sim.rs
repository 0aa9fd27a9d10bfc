//! A dry run for a person: does it fit, how near it came, what filled the device, what could not be known.

use gpumem_collector::insight::peak::{OutOfMemoryRow, PeakRow};

use super::WIDTH;
use super::colour::Style;
use super::notes;
use super::peak::{categories, holders, line, share, when};
use super::size::{count, many, size};
use super::table::{Align, table};
use super::text::{clean, cut, wrap};
use crate::sim::notes::Unknown;
use crate::sim::report::{SearchRow, SimReport, Verdict};

/// What is left of a device is little below this part of it.
const EDGE_SHARE: u64 = 50;

/// The whole report. `top`: how many holders; `directory`: files in it are named from there.
pub(crate) fn sim(report: &SimReport, top: usize, style: Style, directory: &str) -> String {
    let mut out = String::from("\n");
    match &report.search {
        Some(search) => out.push_str(&found(report, search, style)),
        None => out.push_str(&verdict(report, style)),
    }
    if let Some(row) = report.main_row() {
        out.push_str(&others(report, row));
        out.push_str(&match &row.out_of_memory {
            Some(failed) => ran_out(report, row, failed, top, directory),
            None => peak(report, row, top, directory),
        });
    }
    let unknown = unknown(&report.unknown, "- ");
    if !unknown.is_empty() {
        out.push_str(&format!("\nWhat could not be known:\n{unknown}"));
    }
    if !report.notes.is_empty() {
        out.push_str(&format!("\n{}", notes::text(&report.notes)));
    }
    if report.search.is_none() && report.verdict != Verdict::Inconclusive {
        let hint = "How large may it be? Write {batch} in CMD and ask with --vary batch=1..1024";
        out.push_str(&format!("\n{}\n", style.faint(hint)));
    }
    out
}

/// What could not be known, a sentence each behind `bullet`.
pub(crate) fn unknown(unknown: &[Unknown], bullet: &str) -> String {
    unknown
        .iter()
        .map(|one| {
            let text = wrap(&one.why, bullet.len(), WIDTH);
            format!("{bullet}{text}.\n")
        })
        .collect()
}

fn machine(report: &SimReport) -> String {
    let machine = &report.machine;
    let times = match machine.count {
        1 => String::new(),
        count => format!("{count} x "),
    };
    format!(
        "simulated {times}{} with {}",
        machine.name,
        size(machine.memory_bytes)
    )
}

fn verdict(report: &SimReport, style: Style) -> String {
    let word = match report.verdict {
        Verdict::Fits => fits(report, style),
        Verdict::DoesNotFit => style.alarm("DOES NOT FIT"),
        Verdict::Inconclusive => style.strong("CANNOT BE TOLD"),
    };
    let command = cut(&clean(&report.command.join(" ")), WIDTH);
    let mut out = format!("{word}  {}\n{command}\n", machine(report));
    // Where the program ended for want of memory, the next paragraph says so.
    let is_told = report.verdict == Verdict::DoesNotFit && report.exit_status != Some(0);
    if let Some(why) = report.why.as_ref().filter(|_| !is_told) {
        out.push_str(&format!("{}.\n", wrap(&sentence(why), 0, WIDTH)));
    }
    out.push_str(&doubt(report));
    out
}

/// That it fits; with a mark where data decide how much is needed.
fn fits(report: &SimReport, style: Style) -> String {
    if report.certain {
        style.fine("FITS")
    } else {
        style.strong("FITS?")
    }
}

/// What the mark is for.
fn doubt(report: &SimReport) -> String {
    if report.certain || report.verdict != Verdict::Fits {
        return String::new();
    }
    let text = "Data decide the size of some tensors (see below). They were taken to be empty here: where they are not, it needs more.";
    format!("{}\n", wrap(text, 0, WIDTH))
}

/// With its first letter a capital.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_uppercase().chain(letters).collect())
        .unwrap_or_default()
}

/// That there are other processes, and what they have.
fn others(report: &SimReport, row: &PeakRow) -> String {
    let rows = report.processes.len();
    if rows < 2 {
        return String::new();
    }
    let columns = [
        ("PID", Align::Right),
        ("RANK", Align::Right),
        ("DEVICE", Align::Right),
        ("PEAK", Align::Right),
        ("RESERVED", Align::Right),
        ("", Align::Left),
    ];
    let rows: Vec<Vec<String>> = report
        .processes
        .iter()
        .map(|one| {
            let number = |value: Option<String>| value.unwrap_or_else(|| "-".into());
            vec![
                one.pid.to_string(),
                number(one.rank.map(|rank| rank.to_string())),
                number(one.device.map(|device| device.to_string())),
                size(one.peak_bytes),
                size(one.peak_reserved_bytes),
                match (&one.out_of_memory, std::ptr::eq(one, row)) {
                    (Some(_), _) => "out of memory".into(),
                    (None, true) => "shown below".into(),
                    (None, false) => String::new(),
                },
            ]
        })
        .collect();
    format!("\n{}", table(&columns, &rows))
}

fn peak(report: &SimReport, row: &PeakRow, top: usize, directory: &str) -> String {
    let mut out = format!(
        "\n{}\n",
        wrap(
            &format!("Peak: {} in use, {}", size(row.peak_bytes), when(&row.when)),
            0,
            WIDTH
        )
    );
    if let Some(site) = &row.when.site {
        out.push_str(&line(site, directory, 6));
    }
    out.push_str(&format!("\n{}", taken(report, row)));
    out.push_str(&format!("\n{}", categories(&row.by_category)));
    out.push_str(&format!("\n{}", holders(&row.by_site, top, directory)));
    out
}

/// What the device's memory went to when most of it was taken.
fn taken(report: &SimReport, row: &PeakRow) -> String {
    let all = report.machine.memory_bytes;
    let context = report.machine.context_bytes;
    let cached = row.peak_reserved_bytes.saturating_sub(row.peak_bytes);
    let rest = report
        .device_peak_bytes
        .saturating_sub(row.peak_reserved_bytes)
        .saturating_sub(context);
    let about = if report.machine.context_measured {
        ""
    } else {
        ", estimated"
    };
    let mut rows = vec![
        (row.peak_bytes, "in use at the peak".to_owned()),
        (
            cached,
            format!(
                "more that the allocator took (reserved: {})",
                size(row.peak_reserved_bytes)
            ),
        ),
        (context, format!("context{about}")),
    ];
    if rest > 0 {
        rows.push((rest, "other processes and libraries".into()));
    }
    rows.push((report.left_bytes, "left".into()));
    let mut out = format!("{:>9}  {:>5}  OF {}\n", "BYTES", "SHARE", size(all));
    for (bytes, what) in rows {
        out.push_str(&format!(
            "{:>9}  {:>5}  {what}\n",
            size(bytes),
            share(bytes, all)
        ));
    }
    if report.times_short > 0 {
        let times = many(report.times_short, "time");
        let note = format!(
            "Less was free than was asked for {times}: the allocator emptied its cache and went on. It is near the edge."
        );
        out.push_str(&format!("{}\n", wrap(&note, 0, WIDTH)));
    }
    out
}

fn ran_out(
    report: &SimReport,
    row: &PeakRow,
    failed: &OutOfMemoryRow,
    top: usize,
    directory: &str,
) -> String {
    let held = failed
        .reserved_bytes
        .saturating_add(report.machine.context_bytes);
    let free = report.machine.memory_bytes.saturating_sub(held);
    let text = format!(
        "Out of memory: {} asked for, {}",
        size(failed.requested_bytes),
        when(&failed.when)
    );
    let mut out = format!("\n{}\n", wrap(&text, 0, WIDTH));
    match &failed.when.site {
        Some(site) => out.push_str(&line(site, directory, 6)),
        None => out.push_str("      (no name is known of its line)\n"),
    }
    let cached = failed.reserved_bytes.saturating_sub(failed.live_bytes);
    let text = format!(
        "Then {} were in use, {} held by the allocator in pieces too small, {} taken by the context, about {} free. \
         The peak was {}.",
        size(failed.live_bytes),
        size(cached),
        size(report.machine.context_bytes),
        size(free),
        size(row.peak_bytes)
    );
    out.push_str(&format!("{}\n", wrap(&text, 0, WIDTH)));
    out.push_str(&format!("\n{}", categories(&failed.by_category)));
    out.push_str(&format!("\n{}", holders(&failed.by_site, top, directory)));
    out
}

/// The answer of a search.
fn found(report: &SimReport, search: &SearchRow, style: Style) -> String {
    let noun = search.name.as_deref().unwrap_or("value");
    let mut out = match search.largest {
        _ if report.verdict == Verdict::Inconclusive => format!(
            "{}  the search ended early\n",
            style.strong("CANNOT BE TOLD")
        ),
        Some(value) => format!(
            "{}  {noun} {} is the largest that fits\n",
            fits(report, style),
            count(value)
        ),
        None => format!(
            "{}  not even {noun} {} fits\n",
            style.alarm("DOES NOT FIT"),
            count(search.low)
        ),
    };
    out.push_str(&format!("      {}\n\n", machine(report)));
    out.push_str(&tries(search, noun));
    if report.verdict == Verdict::Inconclusive {
        let why = report.why.as_deref().unwrap_or_default();
        out.push_str(&format!("\n{}.\n", wrap(&sentence(why), 0, WIDTH)));
        return out;
    }
    let best = search
        .tried
        .iter()
        .find(|row| Some(row.value) == search.largest);
    if let Some(row) = best {
        let text = format!(
            "{} {}: {} in use at the peak, {} reserved, {} left.",
            sentence(noun),
            count(row.value),
            size(row.tried.peak_bytes),
            size(row.tried.peak_reserved_bytes),
            size(report.left_bytes)
        );
        out.push_str(&format!("\n{}\n", wrap(&text, 0, WIDTH)));
    }
    let room = report.machine.memory_bytes / EDGE_SHARE;
    let edge = if search.largest.is_some() && report.left_bytes < room {
        " That is to the edge: on a real device take somewhat less, since its driver and libraries may hold some hundred MiB more."
    } else {
        ""
    };
    let text = format!("{}{edge}", next(search, &sentence(noun)));
    out.push_str(&format!("{}\n{}", wrap(&text, 0, WIDTH), doubt(report)));
    out
}

/// What the next value would need.
fn next(search: &SearchRow, noun: &str) -> String {
    let Some(next) = &search.next else {
        return "All of the range fits: nothing larger was tried.".into();
    };
    let name = format!("{noun} {}", count(next.value));
    let (Some(peak), Some(need), Some(beyond)) =
        (next.peak_bytes, next.need_bytes, next.beyond_bytes)
    else {
        return format!(
            "{name}: what it needs could not be seen; it fails where there is room, too."
        );
    };
    if beyond > 0 {
        format!(
            "{name}: {} in use at the peak, with the context {}: {} more than there is.",
            size(peak),
            size(need),
            size(beyond)
        )
    } else {
        format!(
            "{name} would need {} at the peak, with the context {}. There is as much, but not in pieces that are large \
             enough: it fails by little.",
            size(peak),
            size(need)
        )
    }
}

fn tries(search: &SearchRow, noun: &str) -> String {
    let heading = noun.to_uppercase();
    let columns = [
        (heading.as_str(), Align::Right),
        ("PEAK", Align::Right),
        ("RESERVED", Align::Right),
        ("FITS", Align::Left),
    ];
    let rows: Vec<Vec<String>> = search
        .tried
        .iter()
        .map(|row| {
            // A run that was cut short never saw its peak.
            let seen = |bytes: u64| {
                if row.tried.fits {
                    size(bytes)
                } else {
                    "-".into()
                }
            };
            vec![
                count(row.value),
                seen(row.tried.peak_bytes),
                seen(row.tried.peak_reserved_bytes),
                if row.tried.fits { "yes" } else { "no" }.into(),
            ]
        })
        .collect();
    table(&columns, &rows)
}

#[cfg(test)]
mod tests;
