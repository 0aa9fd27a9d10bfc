//! Large memory that is no leak, and what it is instead.

use std::collections::BTreeMap;

use gpumem_wire::DeviceOrdinal;

use super::report::{HarmlessKind, NotLeak};
use super::verdict::Verdict;
use super::{Judged, NAMED_BYTES, label};
use crate::model::Process;
use crate::model::place::Layer;

/// How many rows are given at most.
const ROWS: usize = 12;

/// The largest memory that is no leak, by site; an allocator's cache is one row.
pub(super) fn rows(
    process: &Process,
    judged: &[Judged<'_>],
    device: DeviceOrdinal,
) -> Vec<NotLeak> {
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
            .and_modify(|row| row.live_bytes = row.live_bytes.saturating_add(one.past.live_bytes))
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
    rows.truncate(ROWS);
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
                let segments = segments.entry(key).or_default();
                *segments = segments.saturating_add(past.live_bytes);
            }
            None if place.layer == Layer::TorchBlock => {
                blocks = past.live_bytes.saturating_add(blocks);
            }
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
