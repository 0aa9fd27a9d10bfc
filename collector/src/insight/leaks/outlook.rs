//! What the growth of a process means: how much of it the leaks explain, and when the device is full.

use super::Judged;
use super::report::{FullIn, Leak};
use crate::insight::clock::ClockKind;
use crate::model::history::{ClockSource, History};
use crate::model::totals::saturating_sum;

/// When the growth that goes on fills what is free.
pub(super) fn full_in(
    free_bytes: u64,
    leaks: &[Leak],
    history: &History,
    clock: Option<ClockSource>,
) -> Option<FullIn> {
    let growing = || leaks.iter().filter(|leak| leak.still_growing);
    let per_hour = saturating_sum(growing().filter_map(|leak| leak.bytes_per_hour));
    let seconds = (per_hour > 0).then(|| (free_bytes as f64 / per_hour as f64 * 3600.0) as u64);
    let clock_kind = clock.map_or(ClockKind::Repetition, ClockKind::from);
    let mut rates = growing()
        .filter(|leak| leak.clock == clock_kind)
        .map(|leak| leak.bytes_per_step);
    let per_step = match clock {
        Some(_) => saturating_sum(rates),
        // Without a common clock only a single leak has steps.
        None => rates.next().filter(|_| rates.next().is_none()).unwrap_or(0),
    };
    let seconds = seconds.or_else(|| {
        let step_ns = history.step_ns(clock?)?;
        (per_step > 0).then(|| (free_bytes as f64 / per_step as f64 * step_ns / 1e9) as u64)
    });
    let steps = free_bytes.checked_div(per_step);
    (steps.is_some() || seconds.is_some()).then_some(FullIn { steps, seconds })
}

/// The growth of a process on a device, and the leaks' part in it.
pub(super) struct Grown {
    /// Bytes a step of the process's clock; `None` without one.
    pub(super) bytes_per_step: Option<i64>,
    /// 0 to 1; `None` where nothing grew.
    pub(super) explained: Option<f64>,
}

impl Grown {
    pub(super) fn of(history: &History, judged: &[Judged<'_>], clock: Option<ClockSource>) -> Self {
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
