//! Whether a curve of valleys grows, and how: pure arithmetic on steps, bytes and survivors.
//!
//! A curve comes from one place under one clock. Three shapes matter: it grows until the end; it grew evenly over many steps
//! and then stopped or was given back; anything else. The thresholds are ratios, so that the same rules serve ten steps and
//! ten million.

use crate::model::history::Cohort;
use crate::model::totals::saturating_sum;

/// Steps that a growth must cover: fewer are an accident.
pub(super) const LEAST_STEPS: u32 = 6;
/// Objects that a growth which has ended must have piled up.
const LEAST_PILED: u64 = 7;
/// Objects that a growth which goes on must have piled up: a cache with an entry for each of a few shapes also grows until
/// the last shape has come.
const LEAST_ALIVE: u64 = 8;
/// Steps that a growth which has ended must cover.
const LEAST_RAMP: u32 = 7;
/// Bins that a curve is judged by.
const BINS: u32 = 8;
/// Share of bins that must not fall.
const MONOTONE: f64 = 0.85;
/// Share of bins that must rise.
const RISING: f64 = 0.7;
/// Share of bins whose births must have survivors.
const SURVIVED: f64 = 0.75;
/// Share of the growth that the survivors must make up.
const EXPLAINED: f64 = 0.5;
/// The late growth against the early one: under it, the growth dies down by itself.
const STEADY: f64 = 0.5;
/// Share of the range that counts as its bottom, and 1 less it as its top.
const EDGE: f64 = 0.02;
/// Share of its most that a growth must not fall under, to count as kept.
const KEPT: f64 = 0.5;
/// Steps from which on survivors alone are believed.
const LEAST_NOISY_STEPS: u32 = 12;
/// Steps after which a buffer that is made anew and larger each time is believed to grow for ever.
const LEAST_BUFFER_STEPS: u32 = 16;
/// Points that a slope is taken from: it is quadratic in them.
const SLOPE_POINTS: usize = 200;

/// The valley of one step, or of several equal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// The first step.
    pub(super) step: u32,
    /// How many.
    pub(super) steps: u32,
    /// The least bytes alive in them.
    pub(super) valley: u64,
    /// Objects alive then.
    pub(super) blocks: u64,
}

impl Sample {
    const fn end(&self) -> u32 {
        self.step.saturating_add(self.steps)
    }
}

/// How a curve grew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Growth {
    /// The slope.
    pub(super) bytes_per_step: f64,
    /// Objects that came to stay, per step.
    pub(super) blocks_per_step: f64,
    /// The first step of the growth.
    pub(super) from: u32,
    /// The last step of the growth.
    pub(super) to: u32,
    /// Share of the bins that did not fall.
    pub(super) monotone: f64,
    /// Share of the bins whose births have survivors.
    pub(super) survived: f64,
    /// Whether it is one object that is made anew and larger, rather than ever more objects.
    pub(super) one_buffer: bool,
    /// Whether what it had grown to was kept for all the steps that followed.
    pub(super) kept: bool,
}

/// The shape of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// It grows until the end.
    Growing(Growth),
    /// It grew evenly over many steps, then stopped.
    Stopped(Growth),
    /// None of it: flat, noise, a jump, teeth, or a growth that dies down.
    Other,
}

/// The shape of a curve, the steps before `warm_up` left out.
pub(super) fn shape(samples: &[Sample], cohorts: &[Cohort], warm_up: u32) -> Shape {
    let Some(window) = after(samples, warm_up) else {
        return Shape::Other;
    };
    let started = |growth: Growth| Growth {
        from: begin(samples, cohorts, growth.from, warm_up),
        ..growth
    };
    let piled = piling_up(&window, cohorts);
    // What rose and fell before will fall again.
    let range = Range::of(&window).filter(|range| range.ramps(&window) == 1);
    if let Some(growth) = range.and_then(|range| growing(&window, range, cohorts)) {
        // What survives says how much to the byte; the valley also holds what is only in use.
        let exact = piled.map_or(growth, |piled| Growth {
            bytes_per_step: piled.bytes_per_step,
            blocks_per_step: piled.blocks_per_step,
            ..growth
        });
        return Shape::Growing(started(exact));
    }
    // A valley that is noisy hides a leak; survivors from all of the past do not.
    let length = steps(&window);
    let oldest = window.first().map_or(0, |first| first.step) + length / BINS;
    if let Some(growth) = piled.filter(|piled| piled.survived >= 1.0 && piled.from <= oldest)
        && length >= LEAST_NOISY_STEPS
    {
        return Shape::Growing(started(growth));
    }
    if let Some(growth) = range.and_then(|_| growing_buffer(&window)) {
        Shape::Growing(started(growth))
    } else if let Some(growth) = range.and_then(|range| ramp(&window, range)) {
        Shape::Stopped(started(growth))
    } else {
        Shape::Other
    }
}

/// The survivors alone, added up by the step of their birth, as a curve that grows.
fn piling_up(window: &[Sample], cohorts: &[Cohort]) -> Option<Growth> {
    let (first, end) = (window.first()?.step, window.last()?.end());
    let mut sum = Sample {
        step: first,
        steps: 1,
        valley: 0,
        blocks: 0,
    };
    let mut curve = vec![sum];
    for cohort in cohorts
        .iter()
        .filter(|cohort| (first..end).contains(&cohort.step))
    {
        sum.valley = sum.valley.saturating_add(cohort.bytes);
        sum.blocks += cohort.blocks;
        // What was born in a step counts from the next one on, as in a valley.
        sum.step = cohort.step.saturating_add(cohort.steps);
        if let Some(last) = curve.last_mut() {
            last.steps = sum.step.saturating_sub(last.step).max(1);
        }
        curve.push(sum);
    }
    if let Some(last) = curve.last_mut() {
        last.steps = end.saturating_sub(last.step).max(1);
    }
    growing(&curve, Range::of(&curve)?, cohorts)
}

/// The slope of a curve in bytes a step: the median of the slopes between all pairs of points (Theil and Sen), which a third
/// of wild points cannot move.
pub(super) fn slope(samples: &[Sample], value: impl Fn(&Sample) -> u64) -> f64 {
    let stride = samples.len().div_ceil(SLOPE_POINTS).max(1);
    let points: Vec<(f64, f64)> = samples
        .iter()
        .flat_map(|sample| {
            // A row that stands for many steps is a line, not a point.
            let last = (sample.steps > 1).then(|| f64::from(sample.end() - 1));
            [Some(f64::from(sample.step)), last]
                .into_iter()
                .flatten()
                .map(|step| (step, value(sample) as f64))
        })
        .step_by(stride)
        .collect();
    let mut slopes: Vec<f64> = points
        .iter()
        .enumerate()
        .flat_map(|(index, a)| {
            points
                .iter()
                .skip(index + 1)
                .filter(|b| b.0 > a.0)
                .map(|b| (b.1 - a.1) / (b.0 - a.0))
        })
        .collect();
    let middle = slopes.len() / 2;
    if slopes.is_empty() {
        return 0.0;
    }
    *slopes.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// The part of a curve from a step on.
fn after(samples: &[Sample], step: u32) -> Option<Vec<Sample>> {
    let window: Vec<Sample> = samples
        .iter()
        .filter(|sample| sample.end() > step)
        .map(|sample| {
            let from = sample.step.max(step);
            Sample {
                step: from,
                steps: sample.end() - from,
                ..*sample
            }
        })
        .collect();
    (steps(&window) >= LEAST_STEPS).then_some(window)
}

fn steps(samples: &[Sample]) -> u32 {
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.end().saturating_sub(first.step),
        _ => 0,
    }
}

/// Where a growth that was seen from step `seen` on really began: its first births may lie in the warm-up.
fn begin(samples: &[Sample], cohorts: &[Cohort], seen: u32, warm_up: u32) -> u32 {
    let mut at = seen;
    if seen <= warm_up {
        let upto = || samples.iter().filter(|sample| sample.step <= seen);
        let least = upto().map(|sample| sample.valley).min().unwrap_or(0);
        at = upto()
            .filter(|sample| sample.valley == least)
            .map(|sample| sample.end() - 1)
            .next_back()
            .unwrap_or(seen)
            .min(seen);
    }
    cohorts
        .iter()
        .map(|cohort| cohort.step)
        .find(|&step| step >= at)
        .filter(|&step| step <= seen.saturating_add(LEAST_STEPS))
        .unwrap_or(at)
}

/// Grows until the end, with survivors all along.
fn growing(window: &[Sample], range: Range, cohorts: &[Cohort]) -> Option<Growth> {
    let window = since_bottom(window, range)?;
    let bins = Bins::of(&window)?;
    let survivors = bins.survivors(cohorts);
    let since = || cohorts.iter().filter(|cohort| cohort.step >= bins.from);
    let born_since: u64 = saturating_sum(since().map(|cohort| cohort.bytes));
    let alive: u64 = since().map(|cohort| cohort.blocks).sum();
    let grown = bins.grown();
    let holds = bins.nondecreasing() >= MONOTONE
        && bins.rising() >= RISING
        && bins.late_to_early() >= STEADY
        && survivors >= SURVIVED
        && alive >= LEAST_ALIVE
        && born_since as f64 >= EXPLAINED * grown as f64;
    holds
        .then(|| growth_of(&window, &bins, survivors, false))
        .filter(|growth| growth.bytes_per_step > 0.0)
}

/// One object that is made anew and larger at almost every step.
fn growing_buffer(window: &[Sample]) -> Option<Growth> {
    if steps(window) < LEAST_BUFFER_STEPS {
        return None;
    }
    let bins = Bins::of(window)?;
    let pairs = window.windows(2).count().max(1);
    let rising = window
        .windows(2)
        .filter(|pair| matches!(pair, [a, b] if b.valley > a.valley))
        .count();
    let same_blocks = window.first()?.blocks.abs_diff(window.last()?.blocks) <= 1;
    let every_step = window.iter().all(|sample| sample.steps == 1) || window.len() > 64;
    let holds = bins.rising() >= 1.0
        && rising as f64 >= 0.9 * pairs as f64
        && bins.late_to_early() >= STEADY
        && same_blocks
        && every_step;
    holds.then(|| growth_of(window, &bins, 0.0, true))
}

/// A single even ramp of at least [`LEAST_RAMP`] steps that piled up objects and then stopped.
fn ramp(window: &[Sample], range: Range) -> Option<Growth> {
    let stop = window
        .iter()
        .position(|sample| range.is_top(sample.valley))?;
    let climb = window.get(..=stop)?;
    let below = Range::of(climb)?;
    let start = climb
        .iter()
        .rposition(|sample| below.is_bottom(sample.valley))?;
    let mut ramp = climb.get(start..)?.to_vec();
    // Only the last step of the bottom and the first of the top belong to the ramp.
    if let Some(bottom) = ramp.first_mut() {
        bottom.step = bottom.end() - 1;
        bottom.steps = 1;
    }
    if let Some(top) = ramp.last_mut() {
        top.steps = 1;
    }
    let piled = ramp.last()?.blocks.saturating_sub(ramp.first()?.blocks);
    if steps(&ramp) < LEAST_RAMP || piled < LEAST_PILED {
        return None;
    }
    let bins = Bins::of(&ramp)?;
    let holds = bins.nondecreasing() >= MONOTONE
        && bins.rising() >= RISING
        && bins.late_to_early() >= STEADY;
    let survived = (piled as f64 / f64::from(steps(&ramp) - 1)).min(1.0);
    let kept = window
        .get(stop..)?
        .iter()
        .all(|sample| range.share(sample.valley) >= KEPT);
    holds.then(|| Growth {
        kept,
        ..growth_of(&ramp, &bins, survived, false)
    })
}

fn growth_of(window: &[Sample], bins: &Bins, survived: f64, one_buffer: bool) -> Growth {
    Growth {
        bytes_per_step: slope(window, |sample| sample.valley),
        blocks_per_step: slope(window, |sample| sample.blocks),
        from: bins.from,
        to: window.last().map_or(bins.from, |last| last.end() - 1),
        monotone: bins.nondecreasing(),
        survived,
        one_buffer,
        kept: true,
    }
}

/// The curve from the last step at which it was at its bottom: a growth may begin late.
fn since_bottom(window: &[Sample], range: Range) -> Option<Vec<Sample>> {
    let bottom = window
        .iter()
        .rposition(|sample| range.is_bottom(sample.valley))?;
    let mut window = window.get(bottom..)?.to_vec();
    if let Some(first) = window.first_mut() {
        first.step = first.end() - 1;
        first.steps = 1;
    }
    (steps(&window) >= LEAST_STEPS).then_some(window)
}

/// The least and the most of a curve.
#[derive(Clone, Copy)]
struct Range {
    least: u64,
    most: u64,
}

impl Range {
    /// `None` for a curve that does not move.
    fn of(window: &[Sample]) -> Option<Self> {
        let least = window.iter().map(|sample| sample.valley).min()?;
        let most = window.iter().map(|sample| sample.valley).max()?;
        (most > least).then_some(Self { least, most })
    }

    fn share(self, valley: u64) -> f64 {
        (valley - self.least) as f64 / (self.most - self.least) as f64
    }

    fn is_bottom(self, valley: u64) -> bool {
        self.share(valley) <= EDGE
    }

    fn is_top(self, valley: u64) -> bool {
        self.share(valley) >= 1.0 - EDGE
    }

    /// How often the curve climbed from its lower to its upper third.
    fn ramps(self, window: &[Sample]) -> u32 {
        let (mut ramps, mut low) = (0, true);
        for sample in window {
            let share = self.share(sample.valley);
            if low && share >= 0.66 {
                ramps += 1;
                low = false;
            } else if !low && share <= 0.33 {
                low = true;
            }
        }
        ramps
    }
}

/// A curve cut into equal parts, each with its least valley.
struct Bins {
    from: u32,
    /// (first step, step after the last, least valley).
    parts: Vec<(u32, u32, u64)>,
}

impl Bins {
    fn of(window: &[Sample]) -> Option<Self> {
        let from = window.first()?.step;
        let length = steps(window);
        let count = BINS.min(length);
        let edge = |part: u32| {
            from + u32::try_from(u64::from(length) * u64::from(part) / u64::from(count))
                .unwrap_or(length)
        };
        let parts: Option<Vec<_>> = (0..count)
            .map(|part| {
                let (begin, end) = (edge(part), edge(part + 1));
                let least = window
                    .iter()
                    .filter(|sample| sample.step < end && sample.end() > begin)
                    .map(|sample| sample.valley)
                    .min()?;
                Some((begin, end, least))
            })
            .collect();
        parts
            .filter(|parts| parts.len() > 2)
            .map(|parts| Self { from, parts })
    }

    fn valley(&self, part: usize) -> i128 {
        self.parts.get(part).map_or(0, |part| i128::from(part.2))
    }

    fn pairs(&self, holds: impl Fn(u64, u64) -> bool) -> f64 {
        let pairs = self.parts.windows(2);
        let all = pairs.len().max(1);
        let some = pairs
            .filter(|pair| matches!(pair, [a, b] if holds(a.2, b.2)))
            .count();
        some as f64 / all as f64
    }

    fn nondecreasing(&self) -> f64 {
        self.pairs(|a, b| b >= a)
    }

    fn rising(&self) -> f64 {
        self.pairs(|a, b| b > a)
    }

    fn grown(&self) -> i128 {
        self.valley(self.parts.len() - 1) - self.valley(0)
    }

    /// The growth over the last parts against that over the first, 1 for a line.
    fn late_to_early(&self) -> f64 {
        let last = self.parts.len() - 1;
        let third = last / 2;
        let early = self.valley(third) - self.valley(0);
        let late = self.valley(last) - self.valley(last - third);
        if early <= 0 {
            return if late > 0 { f64::INFINITY } else { 0.0 };
        }
        late as f64 / early as f64
    }

    /// Share of the parts in which something was born that is still alive. The last part is left out: what was born in it
    /// may simply be in use.
    fn survivors(&self, cohorts: &[Cohort]) -> f64 {
        let parts = self.parts.get(..self.parts.len() - 1).unwrap_or(&[]);
        let alive = parts
            .iter()
            .filter(|(begin, end, _)| {
                cohorts.iter().any(|cohort| {
                    cohort.filled > 0
                        && cohort.step < *end
                        && cohort.step.saturating_add(cohort.steps) > *begin
                })
            })
            .count();
        alive as f64 / parts.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(valleys: impl IntoIterator<Item = u64>) -> Vec<Sample> {
        (0..)
            .zip(valleys)
            .map(|(step, valley)| Sample {
                step,
                steps: 1,
                valley,
                blocks: valley / 10,
            })
            .collect()
    }

    fn survivors(steps: impl IntoIterator<Item = u32>, bytes: u64) -> Vec<Cohort> {
        steps
            .into_iter()
            .map(|step| Cohort {
                step,
                steps: 1,
                filled: 1,
                bytes,
                blocks: 1,
            })
            .collect()
    }

    #[test]
    fn a_line_with_survivors_grows_from_its_first_step() {
        let Shape::Growing(growth) =
            shape(&curve((0..40).map(|s| 10 * s)), &survivors(0..40, 10), 3)
        else {
            panic!("a line must grow");
        };
        assert_eq!((growth.bytes_per_step, growth.from), (10.0, 0));
        assert!(!growth.one_buffer);
    }

    #[test]
    fn a_line_without_survivors_is_no_pile_of_objects() {
        let late = survivors([39], 390);
        let mut samples = curve((0..40).map(|s| 10 * s));
        // Objects go up with bytes, yet none of the old ones lives.
        assert!(!matches!(shape(&samples, &late, 3), Shape::Growing(_)));
        for sample in &mut samples {
            sample.blocks = 1;
        }
        assert!(matches!(shape(&samples, &late, 3), Shape::Growing(g) if g.one_buffer));
    }

    #[test]
    fn a_leak_beneath_a_noisy_valley_is_seen_by_its_survivors() {
        let noise = |s: u64| (s * 7919) % 500;
        let valleys = (0..40u64).map(|s| 10 * s + noise(s));
        let samples = curve(valleys);
        assert!(matches!(
            shape(&samples, &survivors(0..40, 10), 3),
            Shape::Growing(growth) if growth.bytes_per_step == 10.0
        ));
        assert_eq!(shape(&samples, &survivors(38..40, 10), 3), Shape::Other);
    }

    #[test]
    fn a_growth_may_begin_late() {
        let valleys = (0..60u64).map(|s| if s < 30 { 100 } else { 100 + 10 * (s - 30) });
        let Shape::Growing(growth) = shape(&curve(valleys), &survivors(30..60, 10), 3) else {
            panic!("it grows from step 30 on");
        };
        assert_eq!(growth.bytes_per_step, 10.0);
        assert!((29..=31).contains(&growth.from), "{}", growth.from);
    }

    #[test]
    fn a_growth_every_fifth_step_is_still_one() {
        let valleys = (0..100u64).map(|s| 50 * (s / 5));
        let Shape::Growing(growth) = shape(&curve(valleys), &survivors((4..100).step_by(5), 50), 3)
        else {
            panic!("every fifth step leaves something");
        };
        assert!((growth.bytes_per_step - 10.0).abs() < 0.2, "{growth:?}");
    }

    #[test]
    fn a_cache_that_fills_up_and_stays_is_a_ramp_that_stopped() {
        let valleys = (1..25u64).map(|s| 10 * s.min(16));
        let Shape::Stopped(growth) = shape(&curve(valleys), &survivors(8..24, 10), 0) else {
            panic!("sixteen and no more");
        };
        assert_eq!((growth.bytes_per_step, growth.to), (10.0, 15));
    }

    #[test]
    fn jumps_noise_teeth_and_saturation_are_none_of_it() {
        let jump = (0..40u64).map(|s| if s < 20 { 0 } else { 1000 });
        assert_eq!(shape(&curve(jump), &survivors([20], 1000), 3), Shape::Other);
        let noise = (0..40u64).map(|s| 100 + (s * 7919) % 50);
        assert_eq!(shape(&curve(noise), &survivors([39], 100), 3), Shape::Other);
        let teeth = (0..60u64).map(|s| 10 * (s % 20));
        assert_eq!(
            shape(&curve(teeth), &survivors(40..60, 10), 3),
            Shape::Other
        );
        let at = |s: u32| 10_000 - 10_000 / u64::from(s + 1);
        let cohorts: Vec<Cohort> = (0..60)
            .flat_map(|s| survivors([s], at(s + 1) - at(s)))
            .collect();
        assert_eq!(shape(&curve((0..60).map(at)), &cohorts, 3), Shape::Other);
    }
}
