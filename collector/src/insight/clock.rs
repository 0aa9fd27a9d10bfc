//! What a step is: a mark, an optimizer step, a backward pass; where a process has none, each place's own repetitions.

use serde::Serialize;

use crate::model::history::{ClockSource, History};

/// Ticks from which on a source is believed to be the rhythm of the process.
const LEAST_TICKS: u32 = 10;
/// The part of a run after the last tick, from which on the ticks do not stand for the run.
const LONGEST_TAIL: f64 = 0.5;

/// What counts the steps of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockKind {
    /// A phase that a person named.
    Mark,
    /// A step of an optimizer.
    OptimizerStep,
    /// A root backward pass.
    Backward,
    /// An allocation, or a burst of them, at the place itself.
    Repetition,
}

impl ClockKind {
    /// What one tick is called: "step", or "use" of a place that repeats itself.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::OptimizerStep | Self::Backward => "step",
            Self::Repetition => "use",
        }
    }
}

impl From<ClockSource> for ClockKind {
    fn from(source: ClockSource) -> Self {
        match source {
            ClockSource::Mark => Self::Mark,
            ClockSource::OptimizerStep => Self::OptimizerStep,
            ClockSource::Backward => Self::Backward,
        }
    }
}

/// The clock of a process: the most telling source that ticked often enough and until near the end.
pub fn process_clock(history: &History) -> Option<ClockSource> {
    ClockSource::ALL.into_iter().find(|&source| {
        let ticks = history.ticks(source);
        ticks >= LEAST_TICKS && tail(history, source, ticks) <= LONGEST_TAIL
    })
}

/// The share of the run that lies after the last tick.
fn tail(history: &History, source: ClockSource, ticks: u32) -> f64 {
    let (Some((first, end)), Some(last)) = (history.span_ns(), history.step_time(source, ticks))
    else {
        return 1.0;
    };
    end.saturating_sub(last) as f64 / end.saturating_sub(first).max(1) as f64
}
