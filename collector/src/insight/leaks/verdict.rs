//! One place's verdict: a leak of some kind, or what else its memory is.

use super::growth::{self, Growth, Sample, Shape};
use super::report::{Confidence, HarmlessKind, LeakKind};
use crate::insight::clock::ClockKind;
use crate::model::history::{ClockSource, Cohort, History, PlaceHistory, Repetition};
use crate::model::place::{Layer, PlaceId};

/// Steps that are always left out: the first ones allocate what stays.
const WARM_UP_STEPS: u32 = 3;
/// The warm-up of a long run: this part of its steps, up to a most.
const WARM_UP_SHARE: u32 = 20;
const WARM_UP_MOST: u32 = 200;
/// Repetitions from which on a place without a clock of its process is judged.
const LEAST_REPETITIONS: u32 = 8;
/// Repetitions from which on memory that nobody ever freed, and no allocator caches, is a leak.
const LEAST_UNFREED: u32 = 4;
/// Births closer than this are one use of a place above a caching allocator: a model is moved in such a burst.
const BURST_FLOOR_NS: u64 = 1_000_000;
/// What saturates within this part of the run is a queue, a buffer or a warm-up.
const EARLY: f64 = 0.25;
/// A place that was silent for longer than this part of the run at its end, while others went on, has stopped.
const RECENT: f64 = 0.15;
/// A program in which nothing at all happened for longer than this part of its run has stopped growing.
const QUIET: f64 = 0.3;
/// Unless it was no longer than a program may take to end.
const WIND_DOWN_NS: f64 = 5e8;
/// Under this part of its most, memory counts as given back.
const GIVEN_BACK: f64 = 0.5;
/// What is gone again is only spoken of if it had grown for this part of the run.
const LONG: f64 = 0.5;
/// A steady leak of less a step than this cannot be told from the noise of an allocator's rounding.
const LEAST_BYTES_PER_STEP: f64 = 64.0;

/// A leak at one place.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    pub(super) kind: LeakKind,
    pub(super) clock: ClockKind,
    pub(super) bytes_per_step: f64,
    pub(super) blocks_per_step: f64,
    pub(super) bytes_per_hour: Option<f64>,
    pub(super) since_ns: u64,
    pub(super) since_step: u32,
    pub(super) still_growing: bool,
    pub(super) confidence: Confidence,
    /// Steps over which it grew.
    pub(super) steps: u32,
    /// Share of them, in parts, that left survivors.
    pub(super) survived: f64,
    /// One object made anew and larger each time.
    pub(super) one_buffer: bool,
    /// Grew, and is gone again.
    pub(super) given_back: bool,
    /// What is gone went with cycles that Python's collector freed.
    pub(super) collected: bool,
}

/// What a place's memory is.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// A leak.
    Leak(Finding),
    /// Not a leak.
    Harmless(HarmlessKind),
}

/// Judges a place by the clock of its process, or by its own.
pub(super) fn judge(
    history: &History,
    id: PlaceId,
    past: &PlaceHistory,
    layer: Layer,
    clock: Option<ClockSource>,
) -> Verdict {
    match clock {
        Some(source) => by_steps(history, id, past, source),
        None => by_repetitions(history, past, layer),
    }
}

fn by_steps(history: &History, id: PlaceId, past: &PlaceHistory, source: ClockSource) -> Verdict {
    let mut rows = history.rows(id, source);
    // The step that is still open has no valley yet.
    rows.pop();
    let mut samples: Vec<Sample> = rows
        .iter()
        .map(|(step, row)| Sample {
            step: *step,
            steps: row.steps,
            valley: row.valley,
            blocks: row.blocks,
        })
        .collect();
    if let Some(first) = samples.first().map(|sample| sample.step)
        && first > 0
    {
        samples.insert(
            0,
            Sample {
                step: 0,
                steps: first,
                valley: 0,
                blocks: 0,
            },
        );
    }
    let ticks = history.ticks(source);
    let warm_up = (ticks / WARM_UP_SHARE).clamp(WARM_UP_STEPS, WARM_UP_MOST);
    let cohorts = past.cohorts(source);
    let last_valley = samples.last().map_or(0, |sample| sample.valley);
    let given_back = (past.live_bytes as f64) < GIVEN_BACK * last_valley as f64;
    let finding = |kind, growth: Growth, still_growing| {
        let hour_ns = 3600e9;
        Verdict::Leak(Finding {
            kind,
            clock: source.into(),
            bytes_per_step: growth.bytes_per_step,
            blocks_per_step: growth.blocks_per_step,
            bytes_per_hour: history
                .step_ns(source)
                .map(|step_ns| growth.bytes_per_step * hour_ns / step_ns),
            since_ns: history
                .step_time(source, growth.from)
                .unwrap_or(past.first.time_ns)
                .max(past.first.time_ns),
            since_step: growth.from,
            still_growing,
            confidence: confidence(&growth),
            steps: growth.to.saturating_sub(growth.from) + 1,
            survived: growth.survived,
            one_buffer: growth.one_buffer,
            given_back,
            collected: given_back && collected(past),
        })
    };
    match growth::shape(&samples, cohorts, warm_up) {
        Shape::Growing(growth) if growth.bytes_per_step >= LEAST_BYTES_PER_STEP => {
            // Objects that survived were not given back; a single buffer may have been.
            if given_back && growth.one_buffer {
                finding(LeakKind::Retained, growth, false)
            } else {
                finding(LeakKind::Growing, growth, true)
            }
        }
        Shape::Stopped(growth)
            if growth.bytes_per_step >= LEAST_BYTES_PER_STEP
                && f64::from(growth.to) >= EARLY * f64::from(ticks)
                && (growth.kept && !given_back
                    || given_back && collected(past)
                    || f64::from(growth.to - growth.from) >= LONG * f64::from(ticks)) =>
        {
            finding(LeakKind::Retained, growth, false)
        }
        _ => Verdict::Harmless(harmless_by_steps(past, source, ticks, warm_up)),
    }
}

fn by_repetitions(history: &History, past: &PlaceHistory, layer: Layer) -> Verdict {
    let Some((begin_ns, end_ns)) = history.span_ns() else {
        return Verdict::Harmless(HarmlessKind::OneShot);
    };
    // While a program winds down nothing happens that its own time could be told by.
    let active_ns = history.active_until_ns().min(end_ns);
    let run_ns = active_ns.saturating_sub(begin_ns).max(1) as f64;
    let cached = layer == Layer::TorchBlock;
    let mut uses = past
        .repetitions
        .read(if cached { BURST_FLOOR_NS } else { 0 });
    if !cached && count(&uses) < LEAST_UNFREED {
        // A tight loop looks like one burst; where nothing caches, each allocation counts.
        uses = past.repetitions.births();
    }
    let silent_ns = active_ns.saturating_sub(past.last.time_ns) as f64;
    let quiet_ns = end_ns.saturating_sub(active_ns) as f64;
    let rhythm_ns = 3.0 * past.repetitions.usual_gap_ns() as f64;
    let still_growing = silent_ns <= (RECENT * run_ns).max(rhythm_ns)
        && quiet_ns <= (QUIET * run_ns).max(rhythm_ns).max(WIND_DOWN_NS);
    let finding = |kind, growth: Growth, still_growing, given_back| {
        let from = at(&uses, growth.from);
        let to = at(&uses, growth.to);
        let (from_ns, to_ns) = (
            from.map_or(past.first.time_ns, |one| one.first_ns),
            to.map_or(past.last.time_ns, |one| one.last_ns),
        );
        let steps = growth.to.saturating_sub(growth.from) + 1;
        let span_ns = to_ns.saturating_sub(from_ns) as f64;
        let per_ns = f64::from(steps.saturating_sub(1)) / span_ns;
        Verdict::Leak(Finding {
            kind,
            clock: ClockKind::Repetition,
            bytes_per_step: growth.bytes_per_step,
            blocks_per_step: growth.blocks_per_step,
            bytes_per_hour: (span_ns > 0.0).then_some(growth.bytes_per_step * per_ns * 3600e9),
            since_ns: from_ns,
            since_step: growth.from,
            still_growing,
            confidence: confidence(&growth),
            steps,
            survived: growth.survived,
            one_buffer: growth.one_buffer,
            given_back,
            collected: given_back && collected(past),
        })
    };
    let samples: Vec<Sample> = uses
        .iter()
        .map(|one| Sample {
            step: one.index,
            steps: one.count,
            valley: one.valley,
            blocks: one.blocks,
        })
        .collect();
    if !cached && let Some(growth) = never_freed(past, &samples, end_ns) {
        return finding(LeakKind::Unfreed, growth, still_growing, false);
    }
    let cohorts = cohorts_by_use(past, &uses);
    let all = count(&uses);
    let most = samples
        .iter()
        .map(|sample| sample.valley)
        .max()
        .unwrap_or(0);
    let given_back = (past.live_bytes as f64) < GIVEN_BACK * most as f64;
    let share_of_run = |step: u32| {
        at(&uses, step).map_or(1.0, |one| {
            one.last_ns.saturating_sub(begin_ns) as f64 / run_ns
        })
    };
    match growth::shape(&samples, &cohorts, 0) {
        // A buffer that is made anew and larger may be a cache of one request: without a clock nobody can tell.
        Shape::Growing(growth)
            if all >= LEAST_REPETITIONS
                && growth.bytes_per_step >= LEAST_BYTES_PER_STEP
                && !growth.one_buffer
                && still_growing =>
        {
            finding(LeakKind::Growing, growth, true, false)
        }
        Shape::Stopped(growth)
            if growth.bytes_per_step >= LEAST_BYTES_PER_STEP
                && share_of_run(growth.to) >= EARLY
                // What was built up piece by piece and then used is no leak. It is one if the place went on without
                // growing, so that what it piled up was not needed, or if it grew for most of the run and went at once.
                && (growth.kept && !given_back && all > growth.to + 2
                    || given_back
                        && (collected(past)
                            || share_of_run(growth.to) - share_of_run(growth.from) >= LONG)) =>
        {
            finding(LeakKind::Retained, growth, false, given_back)
        }
        _ => Verdict::Harmless(harmless_by_repetitions(
            past,
            all,
            share_of_run(all),
            given_back,
        )),
    }
}

/// Memory of a layer that nothing caches, of which next to none was ever freed although it was asked for again and again.
fn never_freed(past: &PlaceHistory, uses: &[Sample], end_ns: u64) -> Option<Growth> {
    let all = uses
        .last()
        .map_or(0, |last| last.step.saturating_add(last.steps));
    let lived = past.live_bytes as f64 / past.allocated_bytes.max(1) as f64;
    let born_ns = past.last.time_ns.saturating_sub(past.first.time_ns) as f64;
    let since_ns = end_ns.saturating_sub(past.first.time_ns).max(1) as f64;
    // Buffers that are made one after the other when a program starts are not a leak.
    let goes_on = born_ns / since_ns >= 0.5;
    (all >= LEAST_UNFREED && lived >= 0.9 && goes_on).then(|| Growth {
        bytes_per_step: growth::slope(uses, |use_| use_.valley),
        blocks_per_step: growth::slope(uses, |use_| use_.blocks),
        from: 0,
        to: all - 1,
        monotone: 1.0,
        survived: lived,
        one_buffer: false,
        kept: true,
    })
}

fn count(uses: &[Repetition]) -> u32 {
    uses.last()
        .map_or(0, |last| last.index.saturating_add(last.count))
}

fn at(uses: &[Repetition], step: u32) -> Option<&Repetition> {
    let after = uses.partition_point(|one| one.index <= step);
    after.checked_sub(1).and_then(|index| uses.get(index))
}

/// The survivors by the use in which they were born.
fn cohorts_by_use(past: &PlaceHistory, uses: &[Repetition]) -> Vec<Cohort> {
    let step_of = |birth: u64| {
        let after = uses.partition_point(|one| one.first_birth <= birth);
        let one = after.checked_sub(1).and_then(|index| uses.get(index))?;
        let within = (birth - one.first_birth) * u64::from(one.count) / one.births.max(1);
        Some(one.index + u32::try_from(within).unwrap_or(0))
    };
    let mut cohorts: Vec<Cohort> = Vec::new();
    for cohort in past.cohorts_by_birth() {
        let (Some(first), Some(last)) = (
            step_of(u64::from(cohort.step)),
            step_of(u64::from(cohort.step + cohort.steps - 1)),
        ) else {
            continue;
        };
        match cohorts.last_mut() {
            Some(known) if known.step == first => {
                known.steps = known.steps.max(last - first + 1);
                known.bytes = known.bytes.saturating_add(cohort.bytes);
                known.blocks += cohort.blocks;
            }
            _ => cohorts.push(Cohort {
                step: first,
                steps: last - first + 1,
                filled: cohort.filled.min(last - first + 1),
                bytes: cohort.bytes,
                blocks: cohort.blocks,
            }),
        }
    }
    cohorts
}

fn confidence(growth: &Growth) -> Confidence {
    let steps = growth.to.saturating_sub(growth.from) + 1;
    let steady = growth.monotone >= 1.0 && growth.survived >= 0.9;
    if growth.one_buffer {
        Confidence::Low
    } else if steady && steps >= 16 {
        Confidence::High
    } else if steady || steps >= 16 {
        Confidence::Medium
    } else {
        Confidence::Low
    }
}

fn harmless_by_steps(
    past: &PlaceHistory,
    source: ClockSource,
    ticks: u32,
    warm_up: u32,
) -> HarmlessKind {
    let (first, last) = (past.first.step(source), past.last.step(source));
    if dropped(past) {
        HarmlessKind::Transient
    } else if last.saturating_sub(first) < 2 {
        HarmlessKind::OneShot
    } else if last <= warm_up || f64::from(last) <= EARLY * f64::from(ticks) {
        HarmlessKind::WarmUp
    } else {
        HarmlessKind::Bounded
    }
}

fn harmless_by_repetitions(
    past: &PlaceHistory,
    uses: u32,
    last_share: f64,
    given_back: bool,
) -> HarmlessKind {
    if dropped(past) || given_back {
        HarmlessKind::Transient
    } else if uses <= 2 {
        HarmlessKind::OneShot
    } else if past.deaths == 0 && last_share <= EARLY {
        HarmlessKind::WarmUp
    } else if past.deaths == 0 {
        HarmlessKind::Kept
    } else {
        HarmlessKind::Bounded
    }
}

/// Whether most of what went was freed by Python's cycle collector: cycles kept it, and nobody used it any more.
fn collected(past: &PlaceHistory) -> bool {
    past.collected > past.deaths / 2
}

/// Whether next to nothing is left of what it once was.
fn dropped(past: &PlaceHistory) -> bool {
    past.live_bytes as f64 <= 0.05 * past.max_live_bytes as f64
}
