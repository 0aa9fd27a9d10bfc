//! What a dry run means: `gpumem.sim/1`.

use gpumem_collector::insight::fit::Tried;
use gpumem_collector::insight::peak::{PeakRow, peak};
use serde::Serialize;

use super::machine::Machine;
use super::notes::{Notes, Unknown};
use crate::run::Outcome;
use crate::show::notes::sentences;
use crate::show::size::{many, size};

/// The exit status of a program that Ctrl-C ended.
pub(crate) const INTERRUPTED: i32 = 130;

/// The first key of the report.
pub(crate) const SCHEMA: &str = "gpumem.sim/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct SimReport {
    /// [`SCHEMA`].
    pub(crate) schema: &'static str,
    /// Always true: no figure here is a real device's.
    pub(crate) simulated: bool,
    /// The machine.
    pub(crate) machine: MachineRow,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Whether it fits.
    pub(crate) verdict: Verdict,
    /// Why, a sentence; null where it fits.
    pub(crate) why: Option<String>,
    /// The program's exit status, 128 and more where a signal ended it.
    pub(crate) exit_status: Option<i32>,
    /// The most bytes that all processes together took of one device, contexts and caches and all.
    pub(crate) device_peak_bytes: u64,
    /// Bytes of it that were then free.
    pub(crate) left_bytes: u64,
    /// How often less was free than was asked for: an allocator may have emptied its cache and gone on.
    pub(crate) times_short: u64,
    /// The peak of each process and device, as in `gpumem.peak/1`.
    pub(crate) processes: Vec<PeakRow>,
    /// Whether no tensor was made whose size data decide: such were taken to be empty, and a real run may need more.
    pub(crate) certain: bool,
    /// What could not be known.
    pub(crate) unknown: Vec<Unknown>,
    /// What else stands against the figures, in sentences.
    pub(crate) notes: Vec<String>,
    /// The search for the largest value, where one was asked for; all above is then of the largest that fits.
    pub(crate) search: Option<SearchRow>,
}

/// A simulated machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct MachineRow {
    /// The device's name in settings.
    pub(crate) device: &'static str,
    /// As its driver gives it.
    pub(crate) name: &'static str,
    /// How many there are.
    pub(crate) count: u32,
    /// Memory of each.
    pub(crate) memory_bytes: u64,
    /// What a context takes of it.
    pub(crate) context_bytes: u64,
    /// Whether that was measured on a real one.
    pub(crate) context_measured: bool,
}

/// Whether a program fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// It ran to its end and never was without memory.
    Fits,
    /// It ran out of memory.
    DoesNotFit,
    /// It failed otherwise, or used no device.
    Inconclusive,
}

impl Verdict {
    /// The exit status of `gpumem sim`: as in the contract of the command line, a limit passed is 1, inconclusive is 4.
    pub(crate) const fn status(self) -> u8 {
        match self {
            Self::Fits => 0,
            Self::DoesNotFit => 1,
            Self::Inconclusive => 4,
        }
    }
}

/// A search for the largest value that fits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SearchRow {
    /// What was varied; null where it has no name.
    pub(crate) name: Option<String>,
    /// From here.
    pub(crate) low: u64,
    /// Up to here; null: without end.
    pub(crate) high: Option<u64>,
    /// The largest value that fits; null where none does.
    pub(crate) largest: Option<u64>,
    /// What the smallest value needs that does not; null where all fit.
    pub(crate) next: Option<NextRow>,
    /// All that was tried, by value.
    pub(crate) tried: Vec<TriedRow>,
}

/// What a value needs that does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NextRow {
    /// The value.
    pub(crate) value: u64,
    /// The most bytes in use, had the device all the room; null where that could not be seen.
    pub(crate) peak_bytes: Option<u64>,
    /// The most bytes then taken from the driver.
    pub(crate) peak_reserved_bytes: Option<u64>,
    /// What is in use with the context: the least that a device must have.
    pub(crate) need_bytes: Option<u64>,
    /// Bytes of that beyond what the device has; 0: it is for fragmentation alone that it does not fit.
    pub(crate) beyond_bytes: Option<u64>,
}

/// One value that was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TriedRow {
    /// The value.
    pub(crate) value: u64,
    /// How it fared.
    #[serde(flatten)]
    pub(crate) tried: Tried,
}

impl SimReport {
    /// The report of one run.
    pub(crate) fn of(
        machine: &Machine,
        command: &[std::ffi::OsString],
        outcome: &Outcome,
        notes: &Notes,
    ) -> Self {
        let processes: Vec<PeakRow> = peak(&outcome.session)
            .processes
            .into_iter()
            .filter(|row| row.peak_bytes > 0 || row.out_of_memory.is_some())
            .collect();
        let (verdict, why) = verdict(outcome, &processes, notes);
        let context_bytes = machine.device.context_bytes;
        let by_rows = processes
            .iter()
            .map(|row| row.peak_reserved_bytes.saturating_add(context_bytes))
            .max();
        let device_peak_bytes = notes.peak_bytes().or(by_rows).unwrap_or(0);
        Self {
            schema: SCHEMA,
            simulated: true,
            machine: MachineRow {
                device: machine.device.key,
                name: machine.device.name,
                count: machine.count,
                memory_bytes: machine.memory_bytes,
                context_bytes,
                context_measured: machine.device.context_measured,
            },
            command: command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect(),
            verdict,
            why,
            exit_status: outcome.code,
            device_peak_bytes,
            left_bytes: machine.memory_bytes.saturating_sub(device_peak_bytes),
            times_short: notes.refused(),
            processes,
            certain: !notes.sizes_unknown(),
            unknown: notes.unknown(),
            notes: sentences(&outcome.session),
            search: None,
        }
    }

    /// How the run fared, for a search.
    pub(crate) fn tried(&self) -> Tried {
        let most = |of: fn(&PeakRow) -> u64| self.processes.iter().map(of).max().unwrap_or(0);
        Tried {
            fits: self.verdict == Verdict::Fits,
            peak_bytes: most(|row| row.peak_bytes),
            peak_reserved_bytes: most(|row| row.peak_reserved_bytes),
        }
    }

    /// The process and device that ran out of memory, else the one with the highest peak.
    pub(crate) fn main_row(&self) -> Option<&PeakRow> {
        self.processes
            .iter()
            .max_by_key(|row| (row.out_of_memory.is_some(), row.peak_bytes))
    }
}

fn verdict(outcome: &Outcome, rows: &[PeakRow], notes: &Notes) -> (Verdict, Option<String>) {
    let times: u64 = rows.iter().map(|row| row.times_out_of_memory).sum();
    let asked = rows
        .iter()
        .filter_map(|row| row.out_of_memory.as_ref())
        .map(|failed| failed.requested_bytes)
        .max();
    if outcome.timed_out {
        return (
            Verdict::Inconclusive,
            Some("the program did not end in time: let it do fewer steps, or allow more with --timeout".into()),
        );
    }
    if let Some(asked) = asked {
        let why = if outcome.failed {
            format!(
                "it ran out of memory when {} more were asked for",
                size(asked)
            )
        } else {
            format!(
                "it ran out of memory {}, the last time when {} more were asked for; the program caught that and went on",
                many(times, "time"),
                size(asked)
            )
        };
        return (Verdict::DoesNotFit, Some(why));
    }
    if outcome.failed {
        let how = match outcome.code {
            Some(INTERRUPTED) => {
                let why = "it was interrupted before it ended: what it took until then is below";
                return (Verdict::Inconclusive, Some(why.into()));
            }
            Some(code) if code > 128 => format!("signal {} ended it", code - 128),
            Some(code) => format!("it ended with status {code}"),
            None => "it failed".into(),
        };
        let simulated = if notes.sizes_unknown() || notes.values_read() {
            ". It read numbers that no kernel computed here: that may be why"
        } else {
            ""
        };
        let why = format!("{how}, and not for want of device memory: see what it said{simulated}");
        return (Verdict::Inconclusive, Some(why));
    }
    if rows.is_empty() {
        let why = "it took no memory of a device: it has no CUDA, or drops LD_PRELOAD (a setuid or static program, a container, \
                   `env -i`)";
        return (Verdict::Inconclusive, Some(why.into()));
    }
    (Verdict::Fits, None)
}
