//! The rhythm of a place itself: its n-th allocation, where a burst of allocations is one.
//!
//! A model that is moved to the device makes three hundred blocks at one line within a moment: that is one repetition. What
//! "within a moment" means depends on the place, so points are kept with the gaps between them, those closest in time are
//! merged first, and bursts are told when the rhythm is read.

use super::thin;
use crate::model::totals::saturating_sum;

/// A gap this much shorter than the place's usual one does not separate two repetitions.
const BURST: u64 = 50;

/// One repetition of a place, or several that were merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// The number of the first, from 0.
    pub index: u32,
    /// How many it stands for.
    pub count: u32,
    /// The first birth at this place that belongs to it, from 0.
    pub first_birth: u64,
    /// Births in it.
    pub births: u64,
    /// Bytes allocated in it.
    pub bytes: u64,
    /// When it began, in nanoseconds since the epoch.
    pub first_ns: u64,
    /// When its last birth was.
    pub last_ns: u64,
    /// The least bytes alive from its last birth until the next repetition.
    pub valley: u64,
    /// Objects alive at the valley.
    pub blocks: u64,
}

/// Births next to each other in time.
#[derive(Clone, Copy, Debug)]
struct Point {
    births: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    /// The longest gap between two of its births.
    longest_gap_ns: u64,
    /// Gaps between its births that separated repetitions, as far as was known when they were merged.
    breaks: u32,
    valley: u64,
    blocks: u64,
}

/// All repetitions of a place.
#[derive(Clone, Debug, Default)]
pub struct Repetitions(Vec<Point>);

impl Repetitions {
    /// How many points are kept.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing was ever allocated here.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn born(&mut self, time_ns: u64, bytes: u64, live_bytes: u64, blocks: u64) {
        self.0.push(Point {
            births: 1,
            bytes,
            first_ns: time_ns,
            last_ns: time_ns,
            longest_gap_ns: 0,
            breaks: 0,
            valley: live_bytes,
            blocks,
        });
        if self.0.len() >= thin::FULL {
            let least = (self.usual_gap_ns() / BURST).max(1);
            thin::thin(&mut self.0, between, |a, b| merged(a, b, least));
        }
    }

    pub(super) fn shrunk(&mut self, live_bytes: u64, blocks: u64) {
        if let Some(point) = self.0.last_mut()
            && live_bytes < point.valley
        {
            point.valley = live_bytes;
            point.blocks = blocks;
        }
    }

    pub(super) fn grown(&mut self, live_bytes: u64, blocks: u64) {
        if let Some(point) = self.0.last_mut() {
            point.valley = point.valley.max(live_bytes);
            point.blocks = point.blocks.max(blocks);
        }
    }

    /// The usual gap between two allocations: half of the time lies in longer ones.
    pub fn usual_gap_ns(&self) -> u64 {
        let mut gaps: Vec<(u64, u64)> = self
            .0
            .windows(2)
            .map(|pair| match pair {
                [a, b] => between(a, b),
                _ => 0,
            })
            .map(|gap| (gap, gap))
            .collect();
        gaps.extend(self.0.iter().filter(|point| point.births > 1).map(|point| {
            let inside = point.last_ns.saturating_sub(point.first_ns);
            let gaps = u64::from(point.breaks).max(1);
            ((inside / gaps).min(point.longest_gap_ns), inside)
        }));
        gaps.sort_unstable();
        let half = saturating_sum(gaps.iter().map(|&(_, span)| span)) / 2;
        let mut sum = 0;
        for (gap, span) in gaps {
            sum = span.saturating_add(sum);
            if sum >= half {
                return gap;
            }
        }
        0
    }

    /// The repetitions in order. Births less than `floor_ns` apart are one repetition whatever the rhythm of the place.
    pub fn read(&self, floor_ns: u64) -> Vec<Repetition> {
        numbered(self.folded((self.usual_gap_ns() / BURST).max(floor_ns).max(1)))
    }

    /// The births in order, each a repetition of its own, however close in time.
    pub fn births(&self) -> Vec<Repetition> {
        numbered(self.0.iter().map(|point| Point {
            breaks: u32::try_from(point.births - 1).unwrap_or(u32::MAX),
            ..*point
        }))
    }

    /// Bytes alive at a time, as near as the points tell.
    pub fn live_at(&self, time_ns: u64) -> u64 {
        let after = self.0.partition_point(|point| point.first_ns <= time_ns);
        let last = after.checked_sub(1).and_then(|index| self.0.get(index));
        last.map_or(0, |point| point.valley)
    }

    fn folded(&self, least: u64) -> Vec<Point> {
        let mut folded: Vec<Point> = Vec::with_capacity(self.0.len());
        for point in &self.0 {
            let mut point = *point;
            if point.longest_gap_ns < least {
                point.breaks = 0;
            }
            match folded.last_mut() {
                Some(last) if between(last, &point) < least => *last = merged(last, &point, least),
                _ => folded.push(point),
            }
        }
        folded
    }
}

fn numbered(points: impl IntoIterator<Item = Point>) -> Vec<Repetition> {
    let (mut index, mut first_birth) = (0u32, 0u64);
    points
        .into_iter()
        .map(|point| {
            let repetition = Repetition {
                index,
                count: point.breaks.saturating_add(1),
                first_birth,
                births: point.births,
                bytes: point.bytes,
                first_ns: point.first_ns,
                last_ns: point.last_ns,
                valley: point.valley,
                blocks: point.blocks,
            };
            index = index.saturating_add(repetition.count);
            first_birth += point.births;
            repetition
        })
        .collect()
}

fn between(a: &Point, b: &Point) -> u64 {
    b.first_ns.saturating_sub(a.last_ns)
}

/// Two points as one. Within a burst the valley is that after its last birth; over several repetitions it is the least.
fn merged(a: &Point, b: &Point, least_gap_ns: u64) -> Point {
    let gap = between(a, b);
    let separate = gap >= least_gap_ns;
    let lower = if separate && a.valley < b.valley {
        a
    } else {
        b
    };
    Point {
        births: a.births + b.births,
        bytes: a.bytes.saturating_add(b.bytes),
        first_ns: a.first_ns,
        last_ns: b.last_ns,
        longest_gap_ns: a.longest_gap_ns.max(b.longest_gap_ns).max(gap),
        breaks: a
            .breaks
            .saturating_add(b.breaks)
            .saturating_add(u32::from(separate)),
        valley: lower.valley,
        blocks: lower.blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts repetitions of `bursts` bursts of `births` births, microseconds within, milliseconds between.
    fn count(bursts: u64, births: u64) -> u32 {
        let mut repetitions = Repetitions::default();
        let mut live = 0;
        for burst in 0..bursts {
            for birth in 0..births {
                live += 64;
                repetitions.born(burst * 50_000_000 + birth * 10_000, 64, live, live / 64);
            }
        }
        repetitions.read(0).iter().map(|one| one.count).sum()
    }

    #[test]
    fn a_burst_is_one_repetition() {
        assert_eq!(count(20, 1), 20);
        assert_eq!(count(20, 5), 20);
        assert_eq!(count(10, 300), 10);
        assert_eq!(count(300, 3), 300);
    }

    #[test]
    fn a_floor_makes_one_of_a_single_burst() {
        let mut repetitions = Repetitions::default();
        for birth in 0..300 {
            repetitions.born(birth * 10_000, 64, 64 * birth, birth);
        }
        let one = repetitions.read(1_000_000);
        assert_eq!((one.len(), one[0].count, one[0].births), (1, 1, 300));
    }

    #[test]
    fn the_valley_of_a_repetition_is_what_stays_after_it() {
        let mut repetitions = Repetitions::default();
        for step in 0..4u64 {
            repetitions.born(step * 1000, 64, 64 * step + 128, step + 2);
            repetitions.shrunk(64 * step + 64, step + 1);
        }
        let valleys: Vec<u64> = repetitions.read(0).iter().map(|one| one.valley).collect();
        assert_eq!(valleys, [64, 128, 192, 256]);
    }
}
