//! Leaks: what grows, at which line, since when, and what part of the growth that explains.
//!
//! [`leaks`] reads a session and leaves a [`LeaksReport`]. Each place is judged for itself ([`verdict`], by the arithmetic of
//! [`growth`]), [`cluster`] puts those of one site together, [`label`] writes the sentences, [`outlook`] says what part of the
//! growth that explains and when the device is full, [`harmless`] names what is no leak. Memory of an allocator's segments
//! is never judged: its blocks are.

mod cluster;
mod growth;
mod harmless;
mod label;
mod outlook;
pub mod report;
#[cfg(test)]
mod tests;
mod verdict;

use gpumem_wire::DeviceOrdinal;

pub use report::{
    ClockRow, Confidence, FrameRow, FullIn, HarmlessKind, Leak, LeakKind, LeaksReport, NotLeak,
    ProcessLeaks, Since, SiteRow, SiteShare, TorchTotals,
};

use crate::insight::clock::{ClockKind, process_clock};
use crate::insight::who;
use crate::model::history::{ClockSource, PlaceHistory};
use crate::model::place::{Place, PlaceId};
use crate::model::{Process, Session};
use crate::symbols::{Language, ResolvedFrame, frames, site};
use outlook::Grown;
use verdict::{Finding, Verdict};

/// Memory that is no leak is named from this size on.
const NAMED_BYTES: u64 = 1 << 20;

/// A library makes its memory anew for each handle, stream or plan; only from so many on it is believed that they pile up.
const LIBRARY_STEPS: u32 = 16;

/// The leaks of all processes of a session.
pub fn leaks(session: &Session) -> LeaksReport {
    LeaksReport {
        schema: report::SCHEMA,
        processes: session.processes.iter().flat_map(of_process).collect(),
    }
}

/// A place that was judged.
struct Judged<'a> {
    id: PlaceId,
    place: &'a Place,
    past: &'a PlaceHistory,
    frames: Vec<ResolvedFrame>,
    site: Option<SiteRow>,
    verdict: Verdict,
}

impl Judged<'_> {
    fn finding(&self) -> Option<&Finding> {
        match &self.verdict {
            Verdict::Leak(finding) => Some(finding),
            Verdict::Harmless(_) => None,
        }
    }

    fn is_python(&self) -> bool {
        self.frames
            .iter()
            .any(|frame| frame.language == Language::Python)
    }
}

fn of_process(process: &Process) -> Vec<ProcessLeaks> {
    let clock = process_clock(process.history());
    let mut devices: Vec<DeviceOrdinal> = process.totals().keys().copied().collect();
    for (_, place) in process.places().iter() {
        if !devices.contains(&place.device) {
            devices.push(place.device);
        }
    }
    if devices.is_empty() {
        devices.push(DeviceOrdinal::UNKNOWN);
    }
    // Host memory after the devices.
    devices.sort_by_key(|device| (*device == DeviceOrdinal::HOST, device.0));
    devices
        .into_iter()
        .map(|device| on_device(process, device, clock))
        .collect()
}

fn on_device(process: &Process, device: DeviceOrdinal, clock: Option<ClockSource>) -> ProcessLeaks {
    let history = process.history();
    let judged = judge_places(process, device, clock);
    let leaks = cluster::assemble(process, &judged);
    let now = process.totals().get(&device).copied().unwrap_or_default();
    let at_exit = process
        .at_exit()
        .map(|exit| exit.totals.get(&device).copied().unwrap_or_default());
    let growth = Grown::of(history, &judged, clock);
    let definition = process.definitions().device(device);
    let uuid = definition
        .map(|device| device.uuid.clone())
        .filter(|uuid| !uuid.is_empty());
    let live_bytes = at_exit.unwrap_or(now).live.live_bytes;
    ProcessLeaks {
        pid: process.definition().pid,
        command: who::command(process),
        host: process.definition().host.clone(),
        rank: who::rank(process),
        simulated: who::simulated(process),
        device: (device.0 >= 0).then_some(device.0),
        on_host: device == DeviceOrdinal::HOST,
        device_uuid: uuid,
        clock: ClockRow {
            kind: clock.map_or(ClockKind::Repetition, ClockKind::from),
            steps: clock.map(|source| u64::from(history.ticks(source))),
        },
        live_bytes: now.live.live_bytes,
        live_at_exit_bytes: at_exit.map(|totals| totals.live.live_bytes),
        peak_bytes: at_exit.unwrap_or(now).live.peak_bytes,
        growth_bytes_per_step: growth.bytes_per_step,
        growth_explained: growth.explained,
        full_in: definition
            .map(|device| device.total_bytes)
            .filter(|&total| total > 0)
            .and_then(|total| {
                outlook::full_in(total.saturating_sub(live_bytes), &leaks, history, clock)
            }),
        lost_events: process.lost().total(),
        torch_totals: process.checks().get(&device).map(|checks| TorchTotals {
            live: (&checks.allocated).into(),
            reserved: (&checks.reserved).into(),
        }),
        not_leaks: harmless::rows(process, &judged, device),
        leaks,
    }
}

fn judge_places<'a>(
    process: &'a Process,
    device: DeviceOrdinal,
    clock: Option<ClockSource>,
) -> Vec<Judged<'a>> {
    let history = process.history();
    history
        .places()
        .filter_map(|(id, past)| {
            let place = process.places().get(id)?;
            (place.device == device && place.segment_of.is_none()).then_some((id, place, past))
        })
        .map(|(id, place, past)| {
            let mut verdict = verdict::judge(history, id, past, place.layer, clock);
            // Names are looked up only for what may be shown.
            let matters = matches!(verdict, Verdict::Leak(_)) || past.max_live_bytes >= NAMED_BYTES;
            let stack = past.main_stack().unwrap_or(place.stack);
            let frames = if matters {
                frames(process, stack)
            } else {
                Vec::new()
            };
            let few = match &verdict {
                Verdict::Leak(finding) => finding.steps < LIBRARY_STEPS,
                Verdict::Harmless(_) => false,
            };
            if label::is_workspace(&frames) || few && label::is_library(&frames) {
                verdict = Verdict::Harmless(HarmlessKind::Workspace);
            }
            let site = matters.then(|| site(process, stack)).flatten();
            Judged {
                id,
                place,
                past,
                frames,
                site: site.map(SiteRow::from),
                verdict,
            }
        })
        .collect()
}
