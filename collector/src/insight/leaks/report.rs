//! The contract of `gpumem leaks --json`: `gpumem.leaks/1`.

use serde::Serialize;

use crate::insight::clock::ClockKind;
use crate::model::selfcheck::SelfCheck;
use crate::symbols::{Language, ResolvedFrame, Site};

/// The first key of the report.
pub const SCHEMA: &str = "gpumem.leaks/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct LeaksReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One row a process and device; host memory is a row of its own with no device.
    pub processes: Vec<ProcessLeaks>,
}

/// One process on one device.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessLeaks {
    /// The process id, as the process sees it.
    pub pid: u32,
    /// Its command line, secrets masked.
    pub command: String,
    /// Its host.
    pub host: String,
    /// Its rank in its job.
    pub rank: Option<u32>,
    /// The simulated device that it ran on; null for a real one.
    pub simulated: Option<String>,
    /// The device's ordinal in this process; null for host memory, and where the device could not be told.
    pub device: Option<i16>,
    /// Whether this row is of host memory.
    #[serde(skip)]
    pub on_host: bool,
    /// `GPU-...` or `MIG-...`.
    pub device_uuid: Option<String>,
    /// What a step is.
    pub clock: ClockRow,
    /// Bytes in use now, each once at the innermost layer.
    pub live_bytes: u64,
    /// Bytes in use when the process began to exit; null while it runs.
    pub live_at_exit_bytes: Option<u64>,
    /// The most bytes in use.
    pub peak_bytes: u64,
    /// How much the whole process grows a step, under a clock of its own.
    pub growth_bytes_per_step: Option<i64>,
    /// The part of the growth that the leaks below make up, 0 to 1; null where nothing grew.
    pub growth_explained: Option<f64>,
    /// When the device would be full.
    pub full_in: Option<FullIn>,
    /// Events that were lost: with any, the figures are inexact.
    pub lost_events: u64,
    /// How often torch's own totals were compared with ours; null where torch gave none.
    pub torch_totals: Option<TorchTotals>,
    /// The leaks, the worst first.
    pub leaks: Vec<Leak>,
    /// Large memory that is not a leak, and why.
    pub not_leaks: Vec<NotLeak>,
}

/// The comparison of torch's own totals, which come with each of its blocks, with our sums at that very event.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TorchTotals {
    /// Bytes of live blocks.
    pub live: Compared,
    /// Bytes of segments.
    pub reserved: Compared,
}

/// The comparisons of one total.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Compared {
    /// At how many events.
    pub events: u64,
    /// At how many of them the two differed.
    pub differing: u64,
}

impl From<&SelfCheck> for Compared {
    fn from(check: &SelfCheck) -> Self {
        Self {
            events: check.checks,
            differing: check.mismatches,
        }
    }
}

/// What a step is in a process.
#[derive(Clone, Debug, Serialize)]
pub struct ClockRow {
    /// What is counted. `repetition`: the process has no clock, each leak counts the uses of its own place.
    pub kind: ClockKind,
    /// How many there were; null without a clock of the process.
    pub steps: Option<u64>,
}

/// When a device would be full, if nothing changed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FullIn {
    /// Steps from the end of what was seen; null without a step that all that grows has in common.
    pub steps: Option<u64>,
    /// Seconds from the end of what was seen.
    pub seconds: Option<u64>,
}

/// Kinds of leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeakKind {
    /// Still growing at the end.
    Growing,
    /// Grew over many repetitions, then stopped or was given back.
    Retained,
    /// Never freed, in a layer without a caching allocator above it, in a program without a clock.
    Unfreed,
}

/// How sure a leak is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// Few steps, or uneven ones.
    Low,
    /// Few but even steps, or many uneven ones.
    Medium,
    /// Many even steps.
    High,
}

/// One leak.
#[derive(Clone, Debug, Serialize)]
pub struct Leak {
    /// What kind.
    pub kind: LeakKind,
    /// The layer, as in the contract (`torch-block`, `device`, ...).
    pub layer: &'static str,
    /// What a step of `bytes_per_step` is.
    pub clock: ClockKind,
    /// How much it grows, or grew while it did.
    pub bytes_per_step: u64,
    /// The same by the hour.
    pub bytes_per_hour: Option<u64>,
    /// Bytes alive at exit, or now.
    pub live_bytes: u64,
    /// The most bytes it ever held.
    pub max_live_bytes: u64,
    /// Blocks alive at exit, or now.
    pub live_blocks: u64,
    /// How sure it is.
    pub confidence: Confidence,
    /// Since when.
    pub since: Since,
    /// Whether it grew until the end of what was seen.
    pub still_growing: bool,
    /// Whose line it is.
    pub site: Option<SiteRow>,
    /// All sites that leak together, the largest first.
    pub sites: Vec<SiteShare>,
    /// One stack of it, innermost first.
    pub frames: Vec<FrameRow>,
    /// Who holds it; empty where that is not known.
    pub held_by: Vec<HeldBy>,
    /// Why it is believed to be a leak.
    pub why: String,
    /// What to do, where there is evidence for it.
    pub advice: Option<String>,
}

/// When a leak began.
#[derive(Clone, Debug, Serialize)]
pub struct Since {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// The step of the leak's clock.
    pub step: u64,
    /// The last named mark before it.
    pub phase: Option<String>,
}

/// A line of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SiteRow {
    /// The file, as the frame names it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The function.
    pub function: Option<String>,
    /// The text of the line.
    pub text: Option<String>,
}

/// One of the sites of a leak.
#[derive(Clone, Debug, Serialize)]
pub struct SiteShare {
    /// The site; null where no name is known.
    pub site: Option<SiteRow>,
    /// Its part of the growth.
    pub bytes_per_step: u64,
}

/// A frame.
#[derive(Clone, Debug, Serialize)]
pub struct FrameRow {
    /// The file.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The function, or module and offset.
    pub function: String,
    /// `python` or `native`.
    pub language: &'static str,
}

/// What keeps memory alive.
#[derive(Clone, Debug, Serialize)]
pub struct HeldBy {
    /// What it is: a list, a module's global, a hook.
    pub kind: String,
    /// Its name.
    pub name: Option<String>,
    /// Where it was made.
    pub site: Option<SiteRow>,
}

/// What memory is that stays and is no leak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HarmlessKind {
    /// Made once and kept: weights, optimizer state.
    OneShot,
    /// Made in several uses and kept, without growing on, or too few to tell.
    Kept,
    /// Made in the first steps only.
    WarmUp,
    /// A library's own scratch memory.
    Workspace,
    /// The cache of a framework's allocator.
    Pool,
    /// It comes and goes within bounds.
    Bounded,
    /// It grew, and went again.
    Transient,
}

/// Memory that is no leak.
#[derive(Clone, Debug, Serialize)]
pub struct NotLeak {
    /// What it is instead.
    pub kind: HarmlessKind,
    /// The layer.
    pub layer: &'static str,
    /// Bytes alive at exit, or now; for a pool those that it caches.
    pub live_bytes: u64,
    /// Whose line it is.
    pub site: Option<SiteRow>,
    /// Why it is no leak.
    pub why: String,
}

impl From<Site> for SiteRow {
    fn from(site: Site) -> Self {
        Self {
            file: site.file,
            line: site.line,
            function: Some(site.function),
            text: site.text,
        }
    }
}

impl From<ResolvedFrame> for FrameRow {
    fn from(frame: ResolvedFrame) -> Self {
        Self {
            file: frame.file,
            line: frame.line,
            function: frame.function,
            language: match frame.language {
                Language::Python => "python",
                Language::Native => "native",
            },
        }
    }
}
