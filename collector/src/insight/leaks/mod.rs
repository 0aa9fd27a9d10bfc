//! Leaks: what grows, at which line, since when, and what part of the growth that explains.
//!
//! [`leaks`] reads a session and leaves a [`LeaksReport`]. Each place is judged for itself ([`verdict`], by the arithmetic of
//! [`growth`]), those of one site are put together, and [`label`] writes the sentences. Memory of an allocator's segments is
//! never judged: its blocks are.

mod growth;
mod label;
pub mod report;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::{BTreeMap, HashMap};

use gpumem_wire::{DeviceOrdinal, Object};

pub use report::{
    ClockRow, Confidence, FrameRow, FullIn, HarmlessKind, Leak, LeakKind, LeaksReport, NotLeak,
    ProcessLeaks, Since, SiteRow, SiteShare,
};

use crate::insight::clock::{ClockKind, process_clock};
use crate::insight::who;
use crate::model::history::{ClockSource, History, PlaceHistory};
use crate::model::place::{Layer, Place, PlaceId};
use crate::model::{Process, Session};
use crate::symbols::{Language, ResolvedFrame, frames, site};
use label::Held;
use verdict::{Finding, Verdict};

/// Memory that is no leak is named from this size on.
const NAMED_BYTES: u64 = 1 << 20;
/// How much of it is named at most.
const NAMED: usize = 12;
/// Places that leak in step begin within so many steps of each other.
const TOGETHER_STEPS: u32 = 4;

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
    devices
        .into_iter()
        .map(|device| on_device(process, device, clock))
        .collect()
}

fn on_device(process: &Process, device: DeviceOrdinal, clock: Option<ClockSource>) -> ProcessLeaks {
    let history = process.history();
    let judged = judge_places(process, device, clock);
    let leaks = assemble(process, &judged);
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
            .and_then(|total| full_in(total.saturating_sub(live_bytes), &leaks, history, clock)),
        lost_events: process.lost().total(),
        not_leaks: harmless(process, &judged, device),
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
            let matters = matches!(verdict, Verdict::Leak(_)) || past.live_bytes >= NAMED_BYTES;
            // Names are looked up only for what may be shown.
            let matters = matters || past.max_live_bytes >= NAMED_BYTES;
            let stack = past.main_stack().unwrap_or(place.stack);
            let frames = if matters {
                frames(process, stack)
            } else {
                Vec::new()
            };
            if label::is_workspace(&frames) {
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

/// Puts the places of one site together, and those without a line of source with what they leak in step with.
fn assemble(process: &Process, judged: &[Judged<'_>]) -> Vec<Leak> {
    let mut groups: Vec<Vec<(&Judged<'_>, &Finding)>> = Vec::new();
    let mut by_site: HashMap<_, usize> = HashMap::new();
    for one in judged {
        let Some(finding) = one.finding() else {
            continue;
        };
        let key = (one.place.layer, finding.kind, finding.clock, &one.site);
        match by_site.get(&key).copied().filter(|_| one.site.is_some()) {
            Some(group) => groups[group].push((one, finding)),
            None => {
                by_site.insert(key, groups.len());
                groups.push(vec![(one, finding)]);
            }
        }
    }
    join_nameless(&mut groups);
    let mut leaks: Vec<Leak> = groups.iter().map(|group| leak(process, group)).collect();
    leaks.sort_by_key(|leak| std::cmp::Reverse(weight(leak)));
    leaks
}

/// Blocks of a backward pass are made on a thread without Python frames. Those that grow in step with a place that has a line
/// of source belong to the same retained graph.
fn join_nameless(groups: &mut Vec<Vec<(&Judged<'_>, &Finding)>>) {
    let rate = |group: &[(&Judged<'_>, &Finding)]| -> u64 {
        group
            .iter()
            .map(|(_, finding)| finding.bytes_per_step as u64)
            .sum()
    };
    let has_line = |group: &[(&Judged<'_>, &Finding)]| {
        group
            .first()
            .is_some_and(|(one, _)| one.is_python() && one.site.is_some())
    };
    let (mut named, nameless): (Vec<_>, Vec<_>) = std::mem::take(groups)
        .into_iter()
        .partition(|group| has_line(group));
    named.sort_by_key(|group| std::cmp::Reverse(rate(group)));
    for group in nameless {
        let host = group.first().and_then(|(one, finding)| {
            named.iter_mut().find(|other| {
                other.first().is_some_and(|(host, leads)| {
                    one.place.layer == Layer::TorchBlock
                        && host.place.layer == Layer::TorchBlock
                        && leads.kind == finding.kind
                        && leads.clock == finding.clock
                        && finding.clock != ClockKind::Repetition
                        && leads.since_step.abs_diff(finding.since_step) <= TOGETHER_STEPS
                })
            })
        });
        match host {
            Some(host) => host.extend(group),
            None => groups.push(group),
        }
    }
    groups.extend(named);
}

fn leak(process: &Process, group: &[(&Judged<'_>, &Finding)]) -> Leak {
    // The place that shows the leak: a line of source first, then the largest.
    let lead = group
        .iter()
        .max_by(|(a, x), (b, y)| {
            let rank = |one: &Judged<'_>| one.is_python() && one.site.is_some();
            rank(a)
                .cmp(&rank(b))
                .then(x.bytes_per_step.total_cmp(&y.bytes_per_step))
        })
        .unwrap_or(&group[0]);
    let (one, finding) = *lead;
    let mut held = Held {
        live_bytes: 0,
        live_blocks: 0,
        births: 0,
        deaths: 0,
        unmapped_bytes: unmapped_bytes(process, group),
    };
    for (member, _) in group {
        held.add(member.past);
    }
    let sum = |value: &dyn Fn(&Finding) -> f64| -> u64 {
        group
            .iter()
            .map(|(_, finding)| value(finding))
            .sum::<f64>()
            .round() as u64
    };
    let first = group
        .iter()
        .map(|(_, finding)| *finding)
        .min_by_key(|finding| finding.since_ns)
        .unwrap_or(finding);
    let total = Finding {
        bytes_per_step: sum(&|finding| finding.bytes_per_step) as f64,
        ..finding.clone()
    };
    Leak {
        kind: finding.kind,
        layer: one.place.layer.name(),
        clock: finding.clock,
        bytes_per_step: sum(&|finding| finding.bytes_per_step),
        bytes_per_hour: finding
            .bytes_per_hour
            .map(|_| sum(&|finding| finding.bytes_per_hour.unwrap_or(0.0))),
        live_bytes: held.live_bytes,
        max_live_bytes: group.iter().map(|(one, _)| one.past.max_live_bytes).sum(),
        live_blocks: held.live_blocks,
        confidence: finding.confidence,
        since: Since {
            time_ns: first.since_ns,
            step: u64::from(first.since_step),
            phase: phase(process, first.since_ns),
        },
        still_growing: group.iter().any(|(_, finding)| finding.still_growing),
        site: one.site.clone(),
        sites: sites(group),
        frames: one.frames.iter().cloned().map(FrameRow::from).collect(),
        held_by: Vec::new(),
        why: label::why(&total, &held),
        advice: label::advice(&total, &held, one.place.layer, one.is_python()),
    }
}

fn sites(group: &[(&Judged<'_>, &Finding)]) -> Vec<SiteShare> {
    let mut shares: Vec<(Option<SiteRow>, f64)> = Vec::new();
    for (one, finding) in group {
        match shares.iter_mut().find(|(site, _)| *site == one.site) {
            Some((_, rate)) => *rate += finding.bytes_per_step,
            None => shares.push((one.site.clone(), finding.bytes_per_step)),
        }
    }
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    shares
        .into_iter()
        .map(|(site, rate)| SiteShare {
            site,
            bytes_per_step: rate.round() as u64,
        })
        .collect()
}

/// What a reader should see first: the fastest, and among equals the largest.
fn weight(leak: &Leak) -> (u64, u64) {
    let per_step = leak.bytes_per_step;
    (per_step.max(leak.max_live_bytes / 64), leak.live_bytes)
}

/// Bytes of a leak's physical memory that no mapping uses.
fn unmapped_bytes(process: &Process, group: &[(&Judged<'_>, &Finding)]) -> u64 {
    if group
        .iter()
        .all(|(one, _)| one.place.layer != Layer::Physical)
    {
        return 0;
    }
    process
        .live()
        .iter()
        .filter(|object| object.object == Object::Physical && object.mappings == 0)
        .filter(|object| {
            let place = process.memory().place_of(object);
            group.iter().any(|(one, _)| Some(one.id) == place)
        })
        .map(|object| object.bytes)
        .sum()
}

fn phase(process: &Process, time_ns: u64) -> Option<String> {
    let before = process
        .marks()
        .partition_point(|mark| mark.time_ns <= time_ns);
    let mark = process.marks().get(before.checked_sub(1)?)?;
    process.definitions().mark(mark.id).map(str::to_owned)
}

/// When the growth that goes on fills what is free.
fn full_in(
    free_bytes: u64,
    leaks: &[Leak],
    history: &History,
    clock: Option<ClockSource>,
) -> Option<FullIn> {
    let growing = || leaks.iter().filter(|leak| leak.still_growing);
    let per_hour: u64 = growing().filter_map(|leak| leak.bytes_per_hour).sum();
    let seconds = (per_hour > 0).then(|| (free_bytes as f64 / per_hour as f64 * 3600.0) as u64);
    let clock_kind = clock.map_or(ClockKind::Repetition, ClockKind::from);
    let mut rates = growing()
        .filter(|leak| leak.clock == clock_kind)
        .map(|leak| leak.bytes_per_step);
    let per_step = match clock {
        Some(_) => rates.sum(),
        // Without a common clock only a single leak has steps.
        None => rates.next().filter(|_| rates.next().is_none()).unwrap_or(0),
    };
    let seconds = seconds.or_else(|| {
        let step_ns = history.step_ns(clock?)?;
        (per_step > 0).then(|| (free_bytes as f64 / per_step as f64 * step_ns / 1e9) as u64)
    });
    (per_step > 0).then(|| FullIn {
        steps: free_bytes / per_step,
        seconds,
    })
}

/// The growth of a process on a device, and the leaks' part in it.
struct Grown {
    bytes_per_step: Option<i64>,
    explained: Option<f64>,
}

impl Grown {
    fn of(history: &History, judged: &[Judged<'_>], clock: Option<ClockSource>) -> Self {
        let leaking = |one: &&Judged<'_>| one.finding().is_some();
        let since = judged
            .iter()
            .filter_map(Judged::finding)
            .map(|finding| finding.since_ns)
            .min();
        let (deltas, steps): (Vec<i128>, u32) = match clock {
            Some(source) => {
                let last = history.ticks(source).saturating_sub(1);
                let first = (last / 4).clamp(3.min(last), 200);
                let delta = |one: &Judged<'_>| {
                    let rows = history.rows(one.id, source);
                    let valley = |step: u32| {
                        let after = rows.partition_point(|(begins, _)| *begins <= step);
                        after
                            .checked_sub(1)
                            .and_then(|index| rows.get(index))
                            .map_or(0, |(_, row)| i128::from(row.valley))
                    };
                    valley(last) - valley(first)
                };
                (judged.iter().map(delta).collect(), last - first)
            }
            None => {
                let since = since.unwrap_or(u64::MAX);
                let delta = |one: &Judged<'_>| {
                    i128::from(one.past.live_bytes)
                        - i128::from(one.past.repetitions.live_at(since.saturating_sub(1)))
                };
                (judged.iter().map(delta).collect(), 0)
            }
        };
        let total: i128 = deltas.iter().sum();
        let of_leaks: i128 = judged
            .iter()
            .zip(&deltas)
            .filter(|(one, _)| leaking(one))
            .map(|(_, delta)| *delta)
            .sum();
        let explained = (total > 0 && (since.is_some() || clock.is_some()))
            .then(|| (of_leaks as f64 / total as f64).clamp(0.0, 1.0));
        Self {
            bytes_per_step: (steps > 0)
                .then(|| i64::try_from(total / i128::from(steps)).unwrap_or(i64::MAX)),
            explained,
        }
    }
}

/// The largest memory that is no leak, by site; an allocator's cache is one row.
fn harmless(process: &Process, judged: &[Judged<'_>], device: DeviceOrdinal) -> Vec<NotLeak> {
    let mut rows: BTreeMap<(HarmlessKind, &'static str, String), NotLeak> = BTreeMap::new();
    for one in judged {
        let Verdict::Harmless(kind) = one.verdict else {
            continue;
        };
        let size = match kind {
            HarmlessKind::Transient => one.past.max_live_bytes / 16,
            _ => one.past.live_bytes,
        };
        if size < NAMED_BYTES {
            continue;
        }
        let layer = one.place.layer.name();
        rows.entry((kind, layer, format!("{:?}", one.site)))
            .and_modify(|row| row.live_bytes += one.past.live_bytes)
            .or_insert_with(|| NotLeak {
                kind,
                layer,
                live_bytes: one.past.live_bytes,
                site: one.site.clone(),
                why: label::harmless(kind, one.past),
            });
    }
    let mut rows: Vec<NotLeak> = rows.into_values().collect();
    rows.extend(pools(process, device));
    rows.sort_by_key(|row| std::cmp::Reverse(row.live_bytes));
    rows.truncate(NAMED);
    rows
}

/// What each framework's allocator holds beyond its live blocks.
fn pools(process: &Process, device: DeviceOrdinal) -> Vec<NotLeak> {
    let mut segments: BTreeMap<(&'static str, &'static str, bool), u64> = BTreeMap::new();
    let mut blocks = 0;
    for (id, past) in process.history().places() {
        let Some(place) = process
            .places()
            .get(id)
            .filter(|place| place.device == device)
        else {
            continue;
        };
        match place.segment_of {
            Some(framework) => {
                let key = (
                    framework.name(),
                    place.layer.name(),
                    framework.blocks_are_seen(),
                );
                *segments.entry(key).or_default() += past.live_bytes;
            }
            None if place.layer == Layer::TorchBlock => blocks += past.live_bytes,
            None => {}
        }
    }
    segments
        .into_iter()
        .map(|((framework, layer, seen), reserved)| {
            let cached = if seen {
                let used = blocks.min(reserved);
                blocks -= used;
                reserved - used
            } else {
                reserved
            };
            NotLeak {
                kind: HarmlessKind::Pool,
                layer,
                live_bytes: cached,
                site: None,
                why: if seen {
                    format!("Cached by {framework}'s allocator, free for its next blocks.")
                } else {
                    format!("Held by {framework}'s allocator, whose blocks are not seen.")
                },
            }
        })
        .filter(|row| row.live_bytes > 0)
        .collect()
}
