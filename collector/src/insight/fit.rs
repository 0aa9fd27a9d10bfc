//! The largest value that fits: which value to try next, and what the tries say together.
//!
//! Memory grows with the value (a batch, a length), nearly in a line, so the next try is where the last two that fitted say
//! that the device is full; where that did not close in fast enough, the middle. Without two that fitted the value is
//! doubled. The search ends when the value after the largest that fitted did not.

use std::collections::BTreeMap;

use serde::Serialize;

/// How a value fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Whether the program ran to its end.
    pub fits: bool,
    /// The most bytes in use on any device.
    pub peak_bytes: u64,
    /// The most bytes taken from the driver on any device.
    pub peak_reserved_bytes: u64,
}

/// A search over whole numbers.
#[derive(Clone, Debug)]
pub struct Search {
    low: u64,
    high: Option<u64>,
    /// Bytes of the device that a program can have.
    room_bytes: u64,
    tried: BTreeMap<u64, Tried>,
    /// The last try left more than half of what was open.
    was_slow: bool,
}

/// Most that one try may raise the value, where none failed yet: small values say little about large ones.
const STRIDE: u64 = 8;

impl Search {
    /// A search from `low` to `high`; upwards without end where `high` is `None`.
    pub fn new(low: u64, high: Option<u64>, room_bytes: u64) -> Self {
        Self {
            low,
            high: high.map(|high| high.max(low)),
            room_bytes,
            tried: BTreeMap::new(),
            was_slow: false,
        }
    }

    /// The value to try next; `None`: all is known.
    pub fn next_value(&self) -> Option<u64> {
        if self.tried.is_empty() {
            return Some(self.low);
        }
        let (largest, _) = self.largest()?;
        match self.smallest_failing() {
            Some(failing) if failing - largest <= 1 => None,
            Some(failing) => {
                let middle = largest + (failing - largest) / 2;
                // That the line goes past what failed says that fragmentation, not the peak, is the limit.
                let guess = self.full_at().filter(|&guess| guess < failing);
                let next = guess.filter(|_| !self.was_slow).unwrap_or(middle);
                Some(next.clamp(largest + 1, failing - 1))
            }
            None if self.high == Some(largest) => None,
            None => {
                let doubled = largest.saturating_mul(2);
                let guess = self.full_at().unwrap_or(doubled);
                let most = largest.saturating_mul(STRIDE);
                // A guess below says that this is the last one: then the next decides.
                let next = guess.min(most).max(largest.saturating_add(1));
                let next = self.high.map_or(next, |high| next.min(high));
                (next > largest).then_some(next)
            }
        }
    }

    /// Takes how a value fared.
    pub fn record(&mut self, value: u64, tried: Tried) {
        let before = self.open();
        self.tried.insert(value, tried);
        let after = self.open();
        self.was_slow = before
            .zip(after)
            .is_some_and(|(before, after)| after > before.div_ceil(2));
    }

    /// The largest value that fits, below any that does not.
    pub fn largest(&self) -> Option<(u64, Tried)> {
        let end = self.smallest_failing().unwrap_or(u64::MAX);
        self.tried
            .iter()
            .rev()
            .find(|&(&value, tried)| tried.fits && value <= end)
            .map(|(&value, &tried)| (value, tried))
    }

    /// The smallest value that does not fit.
    pub fn smallest_failing(&self) -> Option<u64> {
        self.tried
            .iter()
            .find(|(_, tried)| !tried.fits)
            .map(|(&value, _)| value)
    }

    /// All that was tried, by value.
    pub fn tried(&self) -> impl Iterator<Item = (u64, Tried)> + '_ {
        self.tried.iter().map(|(&value, &tried)| (value, tried))
    }

    /// The values that may still be the largest that fits.
    fn open(&self) -> Option<u64> {
        Some(self.smallest_failing()? - self.largest()?.0)
    }

    /// The largest value whose peak has room, on the line through the two largest that fitted.
    fn full_at(&self) -> Option<u64> {
        let mut fitted = self.tried().filter(|(_, tried)| tried.fits);
        let (mut before, mut last) = (fitted.next()?, fitted.next()?);
        for next in fitted {
            (before, last) = (last, next);
        }
        let steps = last.0 - before.0;
        let grown = last.1.peak_bytes.checked_sub(before.1.peak_bytes)?;
        let left = self.room_bytes.saturating_sub(last.1.peak_bytes);
        let more = u128::from(left) * u128::from(steps) / u128::from(grown).max(1);
        (grown > 0).then(|| {
            last.0
                .saturating_add(u64::try_from(more).unwrap_or(u64::MAX))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{GIB, MIB};

    /// Runs a search on a program that needs `peak(value)` bytes; gives it, and how many tries it took.
    fn search(low: u64, high: Option<u64>, room: u64, peak: impl Fn(u64) -> u64) -> (Search, u32) {
        let mut search = Search::new(low, high, room);
        let mut tries = 0;
        while let Some(value) = search.next_value() {
            assert!(search.tried().all(|(known, _)| known != value), "{value}");
            let need = peak(value);
            let tried = Tried {
                fits: need <= room,
                peak_bytes: need.min(room),
                peak_reserved_bytes: need.min(room),
            };
            search.record(value, tried);
            tries += 1;
            assert!(tries < 100, "it does not end");
        }
        (search, tries)
    }

    #[test]
    fn a_line_is_found_in_a_few_tries() {
        let peak = |value| 300 * MIB + value * 90 * MIB;
        let (found, tries) = search(1, None, 16 * GIB, peak);
        assert_eq!(found.largest().map(|(value, _)| value), Some(178));
        assert_eq!(found.smallest_failing(), Some(179));
        assert!(tries <= 8, "{tries}");
    }

    #[test]
    fn any_shape_that_grows_is_found() {
        for limit in [1, 2, 3, 7, 64, 65, 1000, 12_345] {
            let shapes: [&dyn Fn(u64) -> u64; 4] = [
                &|value| value * value,
                &|value| value.ilog2().into(),
                &|value| value / 100 * 100,
                &|value| if value <= limit { 1 } else { u64::MAX },
            ];
            for shape in shapes {
                let room = shape(limit);
                let (found, tries) = search(1, Some(20_000), room, shape);
                let largest = found.largest().map(|(value, _)| value).unwrap_or(0);
                assert!(shape(largest) <= room);
                assert!(largest == 20_000 || shape(largest + 1) > room, "{largest}");
                assert!(tries <= 40, "{tries}");
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_are_answers_too() {
        let (all, tries) = search(4, Some(64), GIB, |value| value);
        assert_eq!(all.largest().map(|(value, _)| value), Some(64));
        assert_eq!((all.smallest_failing(), tries), (None, 3));
        let (none, tries) = search(4, Some(64), 1, |value| value);
        assert!(none.largest().is_none());
        assert_eq!((none.smallest_failing(), tries), (Some(4), 1));
        let (one, _) = search(7, Some(7), GIB, |value| value);
        assert_eq!(one.largest().map(|(value, _)| value), Some(7));
    }

    #[test]
    fn memory_that_does_not_grow_is_doubled_up_to_the_end() {
        let (found, _) = search(1, Some(1000), GIB, |_| MIB);
        assert_eq!(found.largest().map(|(value, _)| value), Some(1000));
    }
}
