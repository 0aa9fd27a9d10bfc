//! The peak: when a device held most, what was running, and what all of it was. `gpumem.peak/1`.
//!
//! The model keeps a [`Picture`] of each device's peak, a share for each stack. Here a share gets its line and its
//! [`Category`], and those of one line and one category become a row. The last out-of-memory is such a picture too.

use std::collections::HashMap;

use gpumem_wire::{DeviceOrdinal, Kind};
use serde::Serialize;

use crate::insight::category::{Category, category};
use crate::insight::leaks::SiteRow;
use crate::insight::who;
use crate::model::peak::{Moment, Picture, Share};
use crate::model::{ClockSource, Failure, Layer, Process, Session};
use crate::symbols::site::{Whose, whose};
use crate::symbols::{Language, Mine, ResolvedFrame, Site, frames, operator, site};

/// The first key of the report.
pub const SCHEMA: &str = "gpumem.peak/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct PeakReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One row a process and device.
    pub processes: Vec<PeakRow>,
}

/// The peak of one process on one device.
#[derive(Clone, Debug, Serialize)]
pub struct PeakRow {
    /// The process id, as the process sees it.
    pub pid: u32,
    /// Its command line, secrets masked.
    pub command: String,
    /// Its rank in its job.
    pub rank: Option<u32>,
    /// The device's ordinal in this process; null for host memory, and where the device could not be told.
    pub device: Option<i16>,
    /// The most bytes in use.
    pub peak_bytes: u64,
    /// Bytes that were taken from the driver at that moment: the rest of them an allocator held for reuse.
    pub reserved_bytes: u64,
    /// The most bytes ever taken from the driver.
    pub peak_reserved_bytes: u64,
    /// When and where in the program.
    #[serde(flatten)]
    pub when: When,
    /// What it was, the largest first.
    pub by_category: Vec<CategoryRow>,
    /// Whose it was, the largest first.
    pub by_site: Vec<HolderRow>,
    /// The last time that an allocation failed and the program could not be helped by emptying a cache.
    pub out_of_memory: Option<OutOfMemoryRow>,
    /// How often that was so.
    pub times_out_of_memory: u64,
    /// Backward passes that were seen.
    pub backward_passes: u64,
    /// Optimizer steps that were seen.
    pub optimizer_steps: u64,
    /// Events that were lost: with any, the figures are inexact.
    pub lost_events: u64,
}

/// A moment, as a person looks for it.
#[derive(Clone, Debug, Serialize)]
pub struct When {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// Nanoseconds since the process first used the device's driver.
    pub after_ns: u64,
    /// Which step, from 1: a backward pass and what led to it; null in a program that has none.
    pub step: Option<u64>,
    /// In which part of a step; null in a program without backward passes.
    pub part: Option<Part>,
    /// The last named mark before it.
    pub phase: Option<String>,
    /// The line that was running: that of the last allocation.
    pub site: Option<SiteRow>,
    /// What it called, where the frames tell: an operator of torch.
    pub operator: Option<String>,
}

/// A part of a training step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Up to the backward pass.
    Forward,
    /// The backward pass.
    Backward,
    /// `Optimizer.step`.
    Optimizer,
}

/// What one category had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryRow {
    /// Which.
    pub category: Category,
    /// Bytes.
    pub bytes: u64,
    /// Objects.
    pub blocks: u64,
}

/// What one line had of one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HolderRow {
    /// Whose line it is; null where no name is known, as of what torch's own threads make in a backward pass.
    pub site: Option<SiteRow>,
    /// The operators of torch that made it, where there is no line.
    pub operator: Option<String>,
    /// What it is.
    pub category: Category,
    /// Bytes.
    pub bytes: u64,
    /// Objects.
    pub blocks: u64,
    /// The same by the line nearest to the allocation, in packages too, the largest first. Empty: that is `site` itself.
    pub within: Vec<WithinRow>,
}

/// What one line inside a call had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WithinRow {
    /// The line.
    pub site: SiteRow,
    /// Bytes.
    pub bytes: u64,
}

/// An allocation that failed for good.
#[derive(Clone, Debug, Serialize)]
pub struct OutOfMemoryRow {
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes in use then.
    pub live_bytes: u64,
    /// Bytes taken from the driver then.
    pub reserved_bytes: u64,
    /// When and where; its line is the one that asked.
    #[serde(flatten)]
    pub when: When,
    /// What was held then, the largest first.
    pub by_category: Vec<CategoryRow>,
    /// Whose that was, the largest first.
    pub by_site: Vec<HolderRow>,
}

/// The peaks of all processes of a session, host memory left out.
pub fn peak(session: &Session) -> PeakReport {
    PeakReport {
        schema: SCHEMA,
        processes: session.processes.iter().flat_map(of_process).collect(),
    }
}

fn of_process(process: &Process) -> Vec<PeakRow> {
    let peaks = process.memory().peaks();
    peaks
        .devices()
        .filter(|&device| device != DeviceOrdinal::HOST)
        .filter_map(|device| Some(row(process, device, &peaks.peak(device)?)))
        .collect()
}

fn row(process: &Process, device: DeviceOrdinal, picture: &Picture) -> PeakRow {
    let totals = process.totals().get(&device).copied().unwrap_or_default();
    let held = Held::of(process, picture);
    let failures = for_good(process, device);
    let steps = process.steps();
    PeakRow {
        pid: process.definition().pid,
        command: who::command(process),
        rank: who::rank(process),
        device: (device.0 >= 0).then_some(device.0),
        peak_bytes: picture.moment.bytes,
        reserved_bytes: picture.moment.reserved_bytes,
        peak_reserved_bytes: totals.reserved.peak_bytes,
        when: when(process, &picture.moment),
        by_category: held.by_category(),
        by_site: held.by_site(),
        out_of_memory: failures.last().and_then(|failure| {
            let picture = process.memory().peaks().out_of_memory(device)?;
            Some(out_of_memory(process, failure, picture))
        }),
        times_out_of_memory: failures.len() as u64,
        backward_passes: steps.backwards,
        optimizer_steps: steps.optimizer_steps,
        lost_events: process.lost().total(),
    }
}

/// The failures that no allocator could mend: those of a framework, and in a process without one those of the driver.
fn for_good(process: &Process, device: DeviceOrdinal) -> Vec<&Failure> {
    let has_framework = process
        .totals()
        .get(&device)
        .is_some_and(|totals| totals.layer(Layer::TorchBlock).made_objects > 0);
    let here = || {
        process
            .failures()
            .iter()
            .filter(|failure| failure.device == device)
    };
    let of = |kind: Kind| -> Vec<&Failure> { here().filter(|f| f.kind == kind).collect() };
    let by_framework = of(Kind::BlockOom);
    if has_framework || !by_framework.is_empty() {
        by_framework
    } else {
        of(Kind::AllocFailed)
    }
}

fn out_of_memory(process: &Process, failure: &Failure, picture: &Picture) -> OutOfMemoryRow {
    let held = Held::of(process, picture);
    OutOfMemoryRow {
        requested_bytes: failure.requested_bytes,
        live_bytes: picture.moment.bytes,
        reserved_bytes: picture.moment.reserved_bytes,
        when: when(process, &picture.moment),
        by_category: held.by_category(),
        by_site: held.by_site(),
    }
}

fn when(process: &Process, moment: &Moment) -> When {
    let frames = frames(process, moment.stack);
    let ticks = |wanted: ClockSource| {
        ClockSource::ALL
            .iter()
            .zip(moment.ticks)
            .find_map(|(&source, ticks)| (source == wanted).then_some(u64::from(ticks)))
            .unwrap_or(0)
    };
    let trains = process.steps().backwards > 0;
    let part = trains.then(|| {
        if moment.in_backward {
            Part::Backward
        } else if is_optimizer(&frames) {
            Part::Optimizer
        } else {
            Part::Forward
        }
    });
    let passes = ticks(ClockSource::Backward);
    let phase = process
        .marks()
        .iter()
        .take_while(|mark| mark.time_ns <= moment.time_ns)
        .last()
        .and_then(|mark| process.definitions().mark(mark.id));
    When {
        time_ns: moment.time_ns,
        after_ns: moment
            .time_ns
            .saturating_sub(process.definition().started_ns),
        // What leads to the n-th pass belongs to its step.
        step: part.map(|part| passes + u64::from(part == Part::Forward)),
        part,
        phase: phase.map(str::to_owned),
        site: site(process, moment.stack).map(SiteRow::from),
        operator: operator(&frames),
    }
}

fn is_optimizer(frames: &[ResolvedFrame]) -> bool {
    frames.iter().any(|frame| {
        frame.language == Language::Python
            && frame
                .file
                .as_deref()
                .is_some_and(|file| file.contains("/torch/optim/"))
    })
}

/// All shares of a picture with what they mean.
struct Held {
    rows: Vec<HolderRow>,
}

/// What makes two shares one row.
type Key = (Option<SiteRow>, Option<String>, Category);

impl Held {
    fn of(process: &Process, picture: &Picture) -> Self {
        let mut known: HashMap<Key, usize> = HashMap::new();
        let mut rows: Vec<HolderRow> = Vec::new();
        for share in &picture.shares {
            let frames = frames(process, share.holder.stack);
            let category = category(process, share, &frames);
            let line = site(process, share.holder.stack).map(SiteRow::from);
            let operator = match line {
                None => operator(&frames),
                Some(_) => None,
            };
            let key = (line.clone(), operator.clone(), category);
            let index = *known.entry(key).or_insert_with(|| {
                rows.push(HolderRow {
                    site: line,
                    operator,
                    category,
                    bytes: 0,
                    blocks: 0,
                    within: Vec::new(),
                });
                rows.len() - 1
            });
            if let Some(row) = rows.get_mut(index) {
                row.add(share, nearest(process, &frames));
            }
        }
        for row in &mut rows {
            row.within
                .sort_by_key(|inner| std::cmp::Reverse(inner.bytes));
            let alone = |inner: &WithinRow| Some(&inner.site) == row.site.as_ref();
            if row.within.iter().all(alone) {
                row.within.clear();
            }
        }
        rows.sort_by(|a, b| (b.bytes, &a.site, &a.operator).cmp(&(a.bytes, &b.site, &b.operator)));
        Self { rows }
    }

    fn by_category(&self) -> Vec<CategoryRow> {
        let mut rows: Vec<CategoryRow> = Vec::new();
        for held in &self.rows {
            let (bytes, blocks) = (held.bytes, held.blocks);
            match rows.iter_mut().find(|row| row.category == held.category) {
                Some(row) => {
                    row.bytes = row.bytes.saturating_add(bytes);
                    row.blocks += blocks;
                }
                None => rows.push(CategoryRow {
                    category: held.category,
                    bytes,
                    blocks,
                }),
            }
        }
        rows.sort_by_key(|row| (std::cmp::Reverse(row.bytes), row.category));
        rows
    }

    fn by_site(self) -> Vec<HolderRow> {
        self.rows
    }
}

impl HolderRow {
    fn add(&mut self, share: &Share, nearest: Option<SiteRow>) {
        self.bytes = self.bytes.saturating_add(share.bytes);
        self.blocks += share.blocks;
        let Some(nearest) = nearest else { return };
        match self.within.iter_mut().find(|row| row.site == nearest) {
            Some(row) => row.bytes = row.bytes.saturating_add(share.bytes),
            None => self.within.push(WithinRow {
                site: nearest,
                bytes: share.bytes,
            }),
        }
    }
}

/// The innermost Python line outside torch and the standard library: inside a model of a package, the layer.
fn nearest(process: &Process, frames: &[ResolvedFrame]) -> Option<SiteRow> {
    let frame = frames.iter().find(|frame| {
        frame.language == Language::Python && whose(frame, &Mine::default()) != Whose::Machinery
    })?;
    let text = frame
        .file
        .as_deref()
        .zip(frame.line)
        .and_then(|(file, line)| process.definitions().source(file, line));
    Some(SiteRow::from(Site {
        file: frame.file.clone(),
        line: frame.line,
        function: frame.function.clone(),
        text: text.map(str::to_owned),
    }))
}

#[cfg(test)]
mod tests;
