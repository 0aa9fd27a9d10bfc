//! The sentences: why a place is a leak or is none, and what to do. Only what was seen is said.

use super::report::{HarmlessKind, LeakKind};
use super::verdict::Finding;
use crate::insight::size::size;
use crate::model::definitions::is_cuda_plumbing;
use crate::model::history::PlaceHistory;
use crate::model::place::Layer;
use crate::symbols::{Language, ResolvedFrame};

/// Native functions inside which libraries make their own scratch memory.
const WORKSPACE: [&str; 3] = ["Workspace", "workspace", "getCurrentCUDABlasHandle"];

/// Whether a stack is that of a library's scratch memory: seen in the native frames within the innermost Python frame.
pub(super) fn is_workspace(frames: &[ResolvedFrame]) -> bool {
    frames
        .iter()
        .take_while(|frame| frame.language == Language::Native)
        // A function of the program itself has a source file; a library's has not.
        .filter(|frame| frame.file.is_none())
        .any(|frame| WORKSPACE.iter().any(|name| frame.function.contains(name)))
}

/// Libraries that keep memory of their own for each handle, stream or plan.
const LIBRARIES: [&str; 7] = [
    "libcublas",
    "libcudnn",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libnccl",
];

/// Whether a CUDA library asked the driver for it on its own account: its frame is the nearest outside the runtime.
pub(super) fn is_library(frames: &[ResolvedFrame]) -> bool {
    frames
        .iter()
        .filter_map(|frame| frame.module.as_deref())
        .find(|path| !is_cuda_plumbing(path))
        .is_some_and(|path| {
            let name = path.rsplit('/').next().unwrap_or(path);
            LIBRARIES.iter().any(|library| name.starts_with(library))
        })
}

/// What the places of a leak hold together.
pub(super) struct Held {
    pub(super) live_bytes: u64,
    pub(super) live_blocks: u64,
    pub(super) births: u64,
    pub(super) deaths: u64,
    /// Physical memory that only its handle keeps alive: nothing is mapped.
    pub(super) unmapped_bytes: u64,
}

impl Held {
    pub(super) fn add(&mut self, past: &PlaceHistory) {
        self.live_bytes = self.live_bytes.saturating_add(past.live_bytes);
        self.live_blocks += past.live_blocks;
        self.births += past.births;
        self.deaths += past.deaths;
    }
}

/// Why a place is believed to leak.
pub(super) fn why(finding: &Finding, held: &Held) -> String {
    let (unit, steps) = (finding.clock.unit(), finding.steps);
    let rate = size(finding.bytes_per_step.round() as u64);
    match finding.kind {
        LeakKind::Unfreed => format!(
            "{} of {} allocations made here were never freed, in {steps} {unit}s over the run.",
            held.live_blocks, held.births
        ),
        LeakKind::Growing if finding.one_buffer => format!(
            "One buffer is made anew here and is larger by {rate} each time, in {steps} {unit}s without an end."
        ),
        LeakKind::Growing => format!(
            "The least memory held from here rose by {rate}{} a {unit} over {steps} {unit}s, and {} of these left survivors.",
            blocks_each(finding.blocks_per_step),
            percent(finding.survived)
        ),
        LeakKind::Retained if finding.collected => format!(
            "It rose by {rate} a {unit} over {steps} {unit}s, then Python's cycle collector freed it: reference cycles had kept \
             what nothing used any more."
        ),
        LeakKind::Retained if finding.given_back => format!(
            "It rose by {rate} a {unit} over {steps} {unit}s with nothing freed, then most went at once: it had been kept \
             without need."
        ),
        LeakKind::Retained => format!(
            "It rose by {rate} a {unit} over {steps} {unit}s, then stopped growing; {} are kept.",
            size(held.live_bytes)
        ),
    }
}

/// What to do about it, if what was seen says so.
pub(super) fn advice(finding: &Finding, held: &Held, layer: Layer, python: bool) -> Option<String> {
    let never_freed = held.deaths == 0 && held.births > 1;
    match (layer, finding.kind) {
        (Layer::Physical, _) if held.unmapped_bytes > 0 => Some(format!(
            "{} of physical memory is not mapped anywhere and only its handles keep it: call cuMemRelease for each handle.",
            size(held.unmapped_bytes)
        )),
        (Layer::Physical, _) if never_freed => Some(
            "No handle made here was ever released: call cuMemRelease once it is mapped, or when the buffer goes.".into(),
        ),
        (Layer::Pool, _) if never_freed => {
            Some("Nothing allocated here was ever freed: call cudaFreeAsync (cuMemFreeAsync) when its last use is enqueued.".into())
        }
        (Layer::Device | Layer::Managed, _) if never_freed => {
            Some("Nothing allocated here was ever freed: call cudaFree (cuMemFree) when the buffer is no longer used.".into())
        }
        (Layer::PinnedHost, _) if never_freed => Some(
            "Nothing allocated here was ever freed: call cudaFreeHost (cuMemFreeHost) when the buffer is no longer used.".into(),
        ),
        (Layer::RegisteredHost, _) if never_freed => Some(
            "Nothing registered here was ever unregistered: call cudaHostUnregister (cuMemHostUnregister) before the buffer goes."
                .into(),
        ),
        (_, LeakKind::Growing) if finding.one_buffer => Some(
            "Bound the buffer, or keep its parts on the host: each time it is copied into a larger one.".into(),
        ),
        (_, LeakKind::Retained) if finding.collected => Some(
            "Break the cycle: a closure, a hook or an attribute of what is made here leads back to it. Until then \
             gc.collect() frees it."
                .into(),
        ),
        (_, LeakKind::Retained) if finding.given_back => Some(
            "Look for what kept it until then: a cache that was cleared, or a list that was dropped.".into(),
        ),
        (_, LeakKind::Retained) => Some(
            "Look for a cache with a limit: it fills up with what this line makes; a smaller limit gives the memory back.".into(),
        ),
        (Layer::TorchBlock, LeakKind::Growing) if python => Some(format!(
            "Look for what keeps the result of this line from one {} to the next: a list, a dict, an attribute, a closure.",
            finding.clock.unit()
        )),
        _ => None,
    }
}

/// Why a place that holds memory is no leak.
pub(super) fn harmless(kind: HarmlessKind, past: &PlaceHistory) -> String {
    let blocks = |count: u64| {
        if count == 1 {
            "1 block".to_owned()
        } else {
            format!("{count} blocks")
        }
    };
    match kind {
        HarmlessKind::OneShot => format!("{} made once and kept.", blocks(past.live_blocks)),
        HarmlessKind::Kept => format!(
            "{} made here and kept. That it goes on growing was not seen.",
            blocks(past.births)
        ),
        HarmlessKind::WarmUp => "Made in the first part of the run only.".into(),
        HarmlessKind::Workspace => {
            "Scratch memory that a CUDA library keeps for each stream.".into()
        }
        HarmlessKind::Pool => "Cached by the framework's allocator for its next blocks.".into(),
        HarmlessKind::Bounded => format!(
            "It comes and goes: {} made, {} alive, never over {}.",
            blocks(past.births),
            past.live_blocks,
            size(past.max_live_bytes)
        ),
        HarmlessKind::Transient => {
            format!("It grew to {} and went again.", size(past.max_live_bytes))
        }
    }
}

/// The number of blocks that stay each time, where it is a whole one.
fn blocks_each(per_step: f64) -> String {
    let whole = per_step.round();
    if whole < 1.0 || (per_step - whole).abs() > 0.01 {
        String::new()
    } else if whole == 1.0 {
        " (1 block)".into()
    } else {
        format!(" ({whole} blocks)")
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}
