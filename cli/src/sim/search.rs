//! The largest value that fits: runs a command again and again, each time with another value in it.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use gpumem_collector::insight::fit::Search;

use super::report::{NextRow, SearchRow, SimReport, TriedRow, Verdict};
use super::{Machine, Simulation};
use crate::run::{Job, Output, Recording, run};
use crate::show::WIDTH;
use crate::show::size::{size, span};
use crate::show::text::{clean, wrap};
use crate::{Failure, show};

/// Memory of the machine on which is seen what a value needs that does not fit: more than any has.
const ROOMY_BYTES: u64 = 1 << 41;
/// Lines of a program's output that are shown where it failed, and the bytes in which they are looked for.
const LINES: usize = 20;
const TAIL_BYTES: u64 = 16 << 10;

/// What is varied: `batch=1..1024`, `batch=1..`, `1..1024`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vary {
    name: Option<String>,
    low: u64,
    high: Option<u64>,
}

impl Vary {
    /// What stands for the value in the command.
    pub(crate) fn placeholder(&self) -> String {
        format!("{{{}}}", self.name.as_deref().unwrap_or(""))
    }

    /// What the value is called.
    pub(crate) fn noun(&self) -> &str {
        self.name.as_deref().unwrap_or("value")
    }

    /// The command with a value in it.
    fn command(&self, command: &[OsString], value: u64) -> Vec<OsString> {
        let (placeholder, value) = (self.placeholder(), value.to_string());
        let fill = |word: &OsString| match word.to_str() {
            Some(text) => text.replace(&placeholder, &value).into(),
            // Text that is not UTF-8 cannot hold the placeholder and be replaced safely; it stays as it is.
            None => word.clone(),
        };
        command.iter().map(fill).collect()
    }

    /// Whether the command has a place for the value.
    pub(crate) fn is_in(&self, command: &[OsString]) -> bool {
        let placeholder = self.placeholder();
        let has = |word: &OsStr| {
            word.to_str()
                .is_some_and(|text| text.contains(&placeholder))
        };
        command.iter().any(|word| has(word))
    }
}

impl FromStr for Vary {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no range: give NAME=LOW..HIGH, as in batch=1..1024, or NAME=LOW.. without an end"
            )
        };
        let (name, range) = match text.split_once('=') {
            Some((name, range)) => (Some(name.trim()), range),
            None => (None, text),
        };
        let (low, high) = range.split_once("..").ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let low = number(low)?;
        let high = match high.trim() {
            "" => None,
            high => Some(number(high.trim_start_matches('='))?),
        };
        let is_word = |name: &str| {
            let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            !name.is_empty() && name.chars().all(word)
        };
        if low == 0 || high.is_some_and(|high| high < low) || !name.is_none_or(is_word) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.map(str::to_owned),
            low,
            high,
        })
    }
}

/// What is searched, and how.
pub(crate) struct Task<'a> {
    /// The program and its arguments, with a place for the value.
    pub(crate) command: &'a [OsString],
    /// What is varied.
    pub(crate) vary: &'a Vary,
    /// The machine that it must fit.
    pub(crate) machine: Machine,
    /// How long one run may take.
    pub(crate) timeout: Duration,
}

/// Searches, and says on stderr how it goes. The report is of the largest value that fits; where none does, of the smallest.
pub(crate) fn search(task: &Task<'_>, simulation: &mut Simulation) -> Result<SimReport, Failure> {
    let Vary { low, high, .. } = *task.vary;
    let machine = task.machine;
    let room_bytes = machine.memory_bytes - machine.device.context_bytes;
    let mut search = Search::new(low, high, room_bytes);
    let mut largest: Option<(u64, SimReport)> = None;
    let mut smallest: Option<SimReport> = None;
    let row = |search: &Search, next| SearchRow {
        name: task.vary.name.clone(),
        low,
        high,
        largest: search.largest().map(|(value, _)| value),
        next,
        tried: search
            .tried()
            .map(|(value, tried)| TriedRow { value, tried })
            .collect(),
    };
    while let Some(value) = search.next_value() {
        let mut report = try_value(task, simulation, machine, value)?;
        if report.verdict == Verdict::Inconclusive {
            report.search = Some(row(&search, None));
            return Ok(report);
        }
        let tried = report.tried();
        search.record(value, tried);
        if tried.fits && largest.as_ref().is_none_or(|(known, _)| *known < value) {
            largest = Some((value, report));
        } else if !tried.fits && smallest.is_none() {
            smallest = Some(report);
        }
    }
    let next = search.smallest_failing();
    let next = next
        .map(|value| need(task, simulation, value))
        .transpose()?;
    let row = row(&search, next);
    let mut report = largest
        .map(|(_, report)| report)
        .or(smallest)
        .ok_or_else(|| Failure::with(Failure::BEFORE_RUN)(anyhow!("no value was tried")))?;
    report.search = Some(row);
    Ok(report)
}

/// Runs the command with one value. A program that fails otherwise than for memory ends the search: its last lines are said.
fn try_value(
    task: &Task<'_>,
    simulation: &mut Simulation,
    machine: Machine,
    value: u64,
) -> Result<SimReport, Failure> {
    let report = run_value(task, simulation, machine, value)?;
    let (report, took, output) = report;
    let noun = task.vary.noun();
    if report.verdict == Verdict::Inconclusive {
        let why = report.why.clone().unwrap_or_default();
        let lines = last_lines(&output);
        if !lines.is_empty() {
            show::say(&format!("gpumem: its last lines:\n{lines}\n"));
        }
        let end = format!("the search ends at {noun} {value}: {why}");
        show::say(&format!("gpumem: {}\n", wrap(&end, 8, WIDTH)));
        return Ok(report);
    }
    let tried = report.tried();
    let how = if tried.fits {
        format!("fits, peak {}", size(tried.peak_bytes))
    } else {
        "does not fit".into()
    };
    let took = span(took.as_secs());
    show::say(&format!(
        "gpumem: simulated, {noun} {value}: {how} ({took})\n"
    ));
    Ok(report)
}

/// What a value needs that does not fit: it is run where there is room.
fn need(task: &Task<'_>, simulation: &mut Simulation, value: u64) -> Result<NextRow, Failure> {
    let machine = task.machine;
    let roomy = Machine {
        memory_bytes: ROOMY_BYTES,
        ..machine
    };
    let (report, ..) = run_value(task, simulation, roomy, value)?;
    let seen = (report.verdict == Verdict::Fits).then(|| report.tried());
    let peak_bytes = seen.map(|tried| tried.peak_bytes);
    let need_bytes = peak_bytes.map(|peak| peak.saturating_add(machine.device.context_bytes));
    Ok(NextRow {
        value,
        peak_bytes,
        peak_reserved_bytes: seen.map(|tried| tried.peak_reserved_bytes),
        need_bytes,
        beyond_bytes: need_bytes.map(|need| need.saturating_sub(machine.memory_bytes)),
    })
}

/// Runs the command with one value; gives the report, how long it took, and where its output is.
fn run_value(
    task: &Task<'_>,
    simulation: &mut Simulation,
    machine: Machine,
    value: u64,
) -> Result<(SimReport, Duration, std::path::PathBuf), Failure> {
    let before = Failure::BEFORE_RUN;
    simulation.renew(machine).map_err(Failure::with(before))?;
    let output = simulation.folder().join("output");
    let file = File::create(&output)
        .with_context(|| format!("{} cannot be made", output.display()))
        .map_err(Failure::with(before))?;
    let command = task.vary.command(task.command, value);
    let begun = Instant::now();
    let outcome = run(&Job {
        command: command.clone(),
        environment: simulation.environment(),
        preload: simulation.preload(),
        recording: Recording::None,
        output: Output::File(file),
        timeout: Some(task.timeout),
        wait: false,
    })?;
    let report = SimReport::of(&machine, &command, &outcome, &simulation.notes());
    Ok((report, begun.elapsed(), output))
}

/// The last lines of a program's output, made safe for a terminal.
fn last_lines(path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = fs::metadata(path)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<String> = text
        .lines()
        .map(|line| format!("  {}", clean(&line.replace('\t', "    "))))
        .collect();
    lines
        .get(lines.len().saturating_sub(LINES)..)
        .unwrap_or(&lines)
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(text: &str) -> Vary {
        text.parse().unwrap()
    }

    #[test]
    fn ranges_have_a_name_or_none_and_an_end_or_none() {
        let named = vary("batch=1..1024");
        assert_eq!((named.low, named.high), (1, Some(1024)));
        assert_eq!(named.placeholder(), "{batch}");
        assert_eq!(vary("8..").placeholder(), "{}");
        assert_eq!(vary("n=8..").high, None);
        assert_eq!(vary("n=8..=9").high, Some(9));
        for wrong in [
            "", "batch", "batch=", "0..4", "9..8", "=1..2", "a b=1..2", "x=1..y", "-1..3",
        ] {
            assert!(wrong.parse::<Vary>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_value_goes_wherever_its_name_stands() {
        let command: Vec<OsString> = ["train.py", "--batch={batch}", "{batch}x{}"]
            .map(Into::into)
            .into();
        let named = vary("batch=1..");
        assert!(named.is_in(&command));
        assert_eq!(
            named.command(&command, 32),
            ["train.py", "--batch=32", "32x{}"].map(OsString::from)
        );
        assert!(!vary("size=1..").is_in(&command));
    }

    #[test]
    fn the_last_lines_are_few_and_cannot_move_the_cursor() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let text: String = (0..5000).map(|n| format!("line {n}\x1b[2J\n")).collect();
        fs::write(&path, text).unwrap();
        let shown = last_lines(&path);
        assert_eq!(shown.lines().count(), LINES);
        assert!(shown.ends_with("  line 4999\\u{1b}[2J"), "{shown}");
        assert_eq!(last_lines(&folder.path().join("none")), "");
    }
}
