//! The leak report for a tired person: the verdict first, then where, how much, since when, why and what to do.

use std::collections::{BTreeSet, HashMap};

use gpumem_collector::insight::clock::ClockKind;
use gpumem_collector::insight::leaks::{
    Confidence, FrameRow, HarmlessKind, Leak, LeakKind, LeaksReport, NotLeak, ProcessLeaks, SiteRow,
};

use super::WIDTH;
use super::colour::Style;
use super::size::{count, many, rate, size, span, span_ns};
use super::text::{clean, cut, cut_start, wrap};

/// Where the text of a leak begins.
const INDENT: usize = 6;
/// Frames that are shown unless all are asked for.
const FRAMES: usize = 3;
/// Steps under which "no leak" says little.
const FEW_STEPS: u64 = 8;

/// What of the report is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// Leaks of each process and device.
    pub(crate) top: usize,
    /// Whether all frames are shown.
    pub(crate) all_frames: bool,
}

/// Where and when a process began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Origin<'a> {
    /// Nanoseconds since the epoch.
    pub(crate) started_ns: u64,
    /// Its working directory: files in it are named from there.
    pub(crate) directory: &'a str,
}

/// Under this much, pinned host memory in which nothing leaks is not spoken of.
const HOST_NEWS_BYTES: u64 = 1 << 20;

/// The whole report but its first line. `origin` gives where the process of a row began.
pub(crate) fn leaks<'a>(
    report: &LeaksReport,
    shown: Shown,
    style: Style,
    origin: impl Fn(&ProcessLeaks) -> Origin<'a>,
) -> String {
    let mut out = String::new();
    for group in alike(&report.processes) {
        if group.iter().all(|row| is_no_news(row, &report.processes)) {
            continue;
        }
        let Some(first) = group.first() else { continue };
        out.push('\n');
        out.push_str(&if group.len() > 1 {
            head_of_many(&group)
        } else {
            head(first)
        });
        out.push_str(&process(first, shown, style, origin(first)));
    }
    out
}

/// A row of host memory that is not worth its lines beside those of the process's devices: a few bytes that a framework pins
/// to read a number back.
fn is_no_news(row: &ProcessLeaks, all: &[ProcessLeaks]) -> bool {
    let is_small = row.on_host && row.leaks.is_empty() && row.peak_bytes < HOST_NEWS_BYTES;
    is_small
        && all
            .iter()
            .any(|other| other.pid == row.pid && !other.on_host)
}

/// Rows that leak the same, as the ranks of a job do, or one program on several devices, put together; those that differ stay
/// apart.
fn alike(rows: &[ProcessLeaks]) -> Vec<Vec<&ProcessLeaks>> {
    let mut groups: Vec<Vec<&ProcessLeaks>> = Vec::new();
    let mut known = HashMap::new();
    for row in rows {
        let leaks: Vec<_> = row
            .leaks
            .iter()
            .map(|leak| (leak.kind, leak.layer, &leak.site))
            .collect();
        // Ranks belong together whatever they do; what else is healthy is named one by one.
        if row.rank.is_none() && leaks.is_empty() {
            groups.push(vec![row]);
            continue;
        }
        let program = row.rank.is_none().then_some(&row.command);
        let key = (program, row.on_host, row.device.is_some(), leaks);
        let group = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(row);
    }
    groups
}

/// The head of rows that say the same; what follows is the first of them.
fn head_of_many(rows: &[&ProcessLeaks]) -> String {
    let list = |values: Vec<String>| values.join(",");
    let ranks: Vec<String> = rows
        .iter()
        .filter_map(|row| row.rank)
        .map(|rank| rank.to_string())
        .collect();
    let between = |value: &dyn Fn(&ProcessLeaks) -> u64| {
        let values = || rows.iter().map(|row| value(row));
        match (values().min(), values().max()) {
            (Some(least), Some(most)) if least < most => {
                format!("{} to {}", size(least), size(most))
            }
            (Some(least), _) => size(least),
            _ => String::new(),
        }
    };
    let device = |row: &ProcessLeaks| row.device.map(|device| device.to_string());
    let (who, first) = match (ranks.first(), rows.first()) {
        (Some(first), _) => (
            format!("ranks {}", list(ranks.clone())),
            format!("rank {first}"),
        ),
        (None, Some(first)) => {
            let mut pids: Vec<String> = rows.iter().map(|row| row.pid.to_string()).collect();
            pids.dedup();
            let devices: BTreeSet<i16> = rows.iter().filter_map(|row| row.device).collect();
            let devices = list(devices.iter().map(i16::to_string).collect());
            let several = |word: &str, values: &str| {
                let ending = if values.contains(',') { "s" } else { "" };
                format!("{word}{ending} {values}")
            };
            let on = |devices: String| {
                if devices.is_empty() {
                    String::new()
                } else {
                    format!(", {}", several("device", &devices))
                }
            };
            (
                format!("{}{}", several("pid", &list(pids)), on(devices)),
                format!("pid {}{}", first.pid, on(device(first).unwrap_or_default())),
            )
        }
        (None, None) => return String::new(),
    };
    let text = format!(
        "{who} alike: live {}, peak {}; {first}:",
        between(&|row| row.live_at_exit_bytes.unwrap_or(row.live_bytes)),
        between(&|row| row.peak_bytes),
    );
    format!("{}\n", wrap(&text, 0, WIDTH))
}

/// One line of a leak: `LEAK  +4.00 MiB/step  train.py:31 train_step`.
pub(crate) fn verdict_line(leak: &Leak, style: Style, directory: &str, width: usize) -> String {
    let figure = rate(leak.bytes_per_step, leak.clock.unit());
    let room = width.saturating_sub(INDENT + figure.len() + 2);
    let place = leak.site.as_ref().map_or_else(
        || "(no name is known of its line)".to_owned(),
        |site| place(site, directory, room),
    );
    format!(
        "{}  {}  {}",
        style.alarm("LEAK"),
        style.alarm(&figure),
        style.strong(&place)
    )
}

fn process(row: &ProcessLeaks, shown: Shown, style: Style, origin: Origin<'_>) -> String {
    let mut out = String::new();
    for leak in row.leaks.iter().take(shown.top) {
        out.push_str(&one(leak, shown, style, origin));
    }
    if row.leaks.len() > shown.top {
        let more = (row.leaks.len() - shown.top) as u64;
        out.push_str(&format!(
            "{} smaller; see all with --top {}\n",
            many(more, "more leak"),
            row.leaks.len()
        ));
    }
    if row.leaks.is_empty() {
        out.push_str(&style.fine("No leak."));
        out.push_str(match row.clock.steps {
            Some(steps) if steps < FEW_STEPS => {
                " Only a few steps were seen: too few to be sure.\n"
            }
            _ => "\n",
        });
    }
    out.push_str(&outlook(row));
    out.push_str(&not_leaks(&row.not_leaks, style));
    out
}

fn head(row: &ProcessLeaks) -> String {
    let mut facts = vec![format!("pid {}", row.pid)];
    facts.extend(row.rank.map(|rank| format!("rank {rank}")));
    facts.push(match row.device {
        Some(device) => format!("device {device}"),
        None if row.on_host => "host memory".into(),
        None => "device unknown".into(),
    });
    facts.push(match row.live_at_exit_bytes {
        Some(bytes) => format!("at exit {}", size(bytes)),
        None => format!("live {}", size(row.live_bytes)),
    });
    facts.push(format!("peak {}", size(row.peak_bytes)));
    if let Some(steps) = row.clock.steps {
        let name = match row.clock.kind {
            ClockKind::Mark => "mark",
            ClockKind::OptimizerStep => "optimizer step",
            ClockKind::Backward => "backward pass",
            ClockKind::Repetition => "step",
        };
        facts.push(match name {
            "backward pass" if steps != 1 => format!("{} backward passes", count(steps)),
            name => many(steps, name),
        });
    }
    format!("{}\n", cut(&facts.join("  "), WIDTH))
}

fn one(leak: &Leak, shown: Shown, style: Style, origin: Origin<'_>) -> String {
    let mut lines = vec![verdict_line(leak, style, origin.directory, WIDTH)];
    let indented = |text: &str| format!("{:INDENT$}{}", "", wrap(text, INDENT, WIDTH));
    if let Some(text) = leak.site.as_ref().and_then(|site| site.text.as_deref()) {
        let text = cut(clean(text.trim()).as_str(), WIDTH - INDENT - 4);
        lines.push(format!("{:1$}{2}", "", INDENT + 4, style.strong(&text)));
    }
    lines.push(indented(&held(leak, origin.started_ns)));
    lines.push(labelled("why", &leak.why));
    lines.extend(leak.advice.iter().map(|advice| labelled("do", advice)));
    let others: Vec<String> = leak
        .sites
        .iter()
        .skip(1)
        .take(4)
        .map(|share| {
            let name = share.site.as_ref().map_or_else(
                || "(no name)".into(),
                |site| place(site, origin.directory, 40),
            );
            format!(
                "{} at {name}",
                rate(share.bytes_per_step, leak.clock.unit())
            )
        })
        .collect();
    if !others.is_empty() {
        lines.push(labelled("with", &others.join(", ")));
    }
    lines.extend(frames(leak, origin.directory, shown.all_frames));
    lines.push(String::new());
    lines.join("\n")
}

/// A sentence after a short word: `why   The least memory ...`.
fn labelled(label: &str, text: &str) -> String {
    let indent = INDENT + 6;
    format!(
        "{:INDENT$}{label:<6}{}",
        "",
        wrap(&clean(text), indent, WIDTH)
    )
}

fn held(leak: &Leak, started_ns: u64) -> String {
    let kind = match leak.kind {
        LeakKind::Growing => "growing",
        LeakKind::Retained => "retained",
        LeakKind::Unfreed => "never freed",
    };
    let blocks = many(leak.live_blocks, "block");
    let after = span_ns(leak.since.time_ns.saturating_sub(started_ns));
    let phase = leak
        .since
        .phase
        .as_deref()
        .map_or_else(String::new, |phase| format!(" in {}", clean(phase)));
    let going = match (leak.kind, leak.still_growing) {
        (LeakKind::Retained, _) => format!(", at most {}", size(leak.max_live_bytes)),
        (_, true) => ", still growing".into(),
        (_, false) => ", no longer growing".into(),
    };
    let sure = match leak.confidence {
        Confidence::High => "",
        Confidence::Medium => " (fairly sure)",
        Confidence::Low => " (not sure)",
    };
    let since = match (leak.clock, leak.since.step) {
        (ClockKind::Repetition, 0) => "its first use".into(),
        (ClockKind::Repetition, step) => format!("its use {}", count(step)),
        (clock, step) => format!("{} {}", clock.unit(), count(step)),
    };
    format!(
        "{kind}{sure}: holds {} in {blocks} ({}), since {since}{phase}, {after} after the start{going}",
        size(leak.live_bytes),
        leak.layer,
    )
}

fn frames(leak: &Leak, directory: &str, all: bool) -> Vec<String> {
    let chosen: Vec<_> = if all {
        leak.frames.iter().collect()
    } else {
        // Without --frames, what a person reads: from the line that is named outward, in its own language.
        let is_named = |frame: &&FrameRow| {
            leak.site.as_ref().is_some_and(|site| {
                (&site.file, site.line) == (&frame.file, frame.line)
                    && site.function.as_deref() == Some(frame.function.as_str())
            })
        };
        let start = leak.frames.iter().position(|frame| is_named(&frame));
        let outward = leak.frames.get(start.unwrap_or(0)..).unwrap_or(&[]);
        let language = outward.first().map(|frame| frame.language);
        let with_line = outward
            .iter()
            .filter(|frame| frame.line.is_some() && Some(frame.language) == language);
        let mut inside_main = true;
        with_line
            .take_while(|frame| {
                let shown = inside_main;
                inside_main &= short_function(&frame.function) != "main";
                shown
            })
            .take(FRAMES)
            .collect()
    };
    let hidden = leak.frames.len() - chosen.len();
    let more = (hidden > 0 && !all && !chosen.is_empty())
        .then(|| format!("{:INDENT$}{:<6}({hidden} more: --frames)", "", ""));
    let rows = chosen.iter().enumerate().map(|(index, frame)| {
        let label = if index == 0 { "from" } else { "" };
        let room = WIDTH - INDENT - 6;
        let row = SiteRow {
            file: frame.file.clone(),
            line: frame.line,
            function: Some(frame.function.clone()),
            text: None,
        };
        format!("{:INDENT$}{label:<6}{}", "", place(&row, directory, room))
    });
    rows.chain(more).collect()
}

fn outlook(row: &ProcessLeaks) -> String {
    let mut facts = Vec::new();
    if let (Some(share), false) = (row.growth_explained, row.leaks.is_empty()) {
        facts.push(format!(
            "This explains {:.0}% of the growth.",
            100.0 * share
        ));
    }
    if let Some(full) = row.full_in {
        let steps = full.steps.map(|steps| many(steps, row.clock.kind.unit()));
        let seconds = full
            .seconds
            .map(|seconds| format!("about {}", span(seconds)));
        let when: Vec<String> = steps.into_iter().chain(seconds).collect();
        facts.push(format!(
            "At this rate the device is full in {}.",
            when.join(", ")
        ));
    }
    if facts.is_empty() {
        String::new()
    } else {
        format!("{}\n", wrap(&facts.join(" "), 0, WIDTH))
    }
}

fn not_leaks(rows: &[NotLeak], style: Style) -> String {
    // What is gone again holds nothing: only machines are told.
    let held = rows
        .iter()
        .filter(|row| row.kind != HarmlessKind::Transient);
    let parts: Vec<String> = held
        .take(4)
        .map(|row| {
            let name = match row.kind {
                HarmlessKind::OneShot => "made once",
                HarmlessKind::Kept => "made and kept",
                HarmlessKind::WarmUp => "warm-up",
                HarmlessKind::Workspace => "workspace",
                HarmlessKind::Pool => "cached by the allocator",
                HarmlessKind::Bounded => "comes and goes",
                HarmlessKind::Transient => "grew and went again",
            };
            match &row.site {
                Some(site) => format!("{} {name} at {}", size(row.live_bytes), short(site)),
                None => format!("{} {name}", size(row.live_bytes)),
            }
        })
        .collect();
    if parts.is_empty() {
        return String::new();
    }
    let text = format!("Not leaks: {}.", parts.join("; "));
    format!("{}\n", style.faint(&wrap(&clean(&text), 0, WIDTH)))
}

/// `train.py:31 train_step`, in `width` characters.
pub(crate) fn place(site: &SiteRow, directory: &str, width: usize) -> String {
    let function = clean(short_function(site.function.as_deref().unwrap_or("")));
    let file = site.file.as_deref().map(|file| {
        let inside = file
            .strip_prefix(directory)
            .filter(|_| !directory.is_empty())
            .and_then(|rest| rest.strip_prefix('/'));
        clean(inside.unwrap_or(file))
    });
    let spot = match (file, site.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file,
        (None, _) => return cut(&function, width),
    };
    let spot_width = width.saturating_sub(function.chars().count() + 1).max(24);
    cut(
        format!("{} {function}", cut_start(&spot, spot_width)).trim_end(),
        width,
    )
}

/// A native function without its namespaces and arguments; a Python one as it is.
fn short_function(function: &str) -> &str {
    let name = function.split_once('(').map_or(function, |(name, _)| name);
    // Of what has template arguments, namespaces cannot be told without parsing it.
    if name.contains(['<', ' ']) || name.is_empty() {
        return function;
    }
    name.rsplit("::").next().unwrap_or(function)
}

/// The same, as short as it can be: the file without its folder.
fn short(site: &SiteRow) -> String {
    match (&site.file, site.line) {
        (Some(file), Some(line)) => {
            format!("{}:{line}", file.rsplit('/').next().unwrap_or(file))
        }
        _ => short_function(site.function.as_deref().unwrap_or("")).to_owned(),
    }
}
