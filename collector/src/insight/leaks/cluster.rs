//! Many places, one leak: those of one site belong together, and those without a line to what they leak in step with.

use std::collections::HashMap;

use gpumem_wire::Object;

use super::Judged;
use super::label::{self, Held};
use super::report::{FrameRow, Leak, Since, SiteRow, SiteShare};
use super::verdict::Finding;
use crate::insight::clock::ClockKind;
use crate::model::Process;
use crate::model::place::Layer;
use crate::model::totals::saturating_sum;

/// Places that leak in step begin within so many steps of each other.
const TOGETHER_STEPS: u32 = 4;

/// Puts the places of one site together, and those without a line of source with what they leak in step with.
pub(super) fn assemble(process: &Process, judged: &[Judged<'_>]) -> Vec<Leak> {
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
        saturating_sum(
            group
                .iter()
                .map(|(_, finding)| finding.bytes_per_step as u64),
        )
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
        max_live_bytes: saturating_sum(group.iter().map(|(one, _)| one.past.max_live_bytes)),
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
    let unmapped = process
        .live()
        .iter()
        .filter(|object| object.object == Object::Physical && object.mappings == 0)
        .filter(|object| {
            let place = process.memory().place_of(object);
            group.iter().any(|(one, _)| Some(one.id) == place)
        })
        .map(|object| object.bytes);
    saturating_sum(unmapped)
}

fn phase(process: &Process, time_ns: u64) -> Option<String> {
    let before = process
        .marks()
        .partition_point(|mark| mark.time_ns <= time_ns);
    let mark = process.marks().get(before.checked_sub(1)?)?;
    process.definitions().mark(mark.id).map(str::to_owned)
}
