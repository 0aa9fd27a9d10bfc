//! Ticks to nanoseconds: the anchors of the event chunks tie the target's clock to real time.

use gpumem_wire::define::Anchor;

/// The clock of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct TickClock {
    first: Option<Anchor>,
    last: Option<Anchor>,
}

impl TickClock {
    /// Takes another anchor. One whose clocks run backwards says nothing and is left out.
    pub fn add(&mut self, anchor: Anchor) {
        let Some(first) = self.first else {
            self.first = Some(anchor);
            return;
        };
        let before = self.last.unwrap_or(first);
        if anchor.ticks > before.ticks && anchor.monotonic_ns > before.monotonic_ns {
            self.last = Some(anchor);
        }
    }

    /// The time of a tick in nanoseconds since the epoch: along the line through the first and the last anchor. With a single
    /// anchor a tick counts as a nanosecond, which is right where the target's clock is `CLOCK_MONOTONIC`.
    pub fn at(&self, ticks: u64) -> u64 {
        let Some(first) = self.first else {
            return ticks;
        };
        let ticks_since = i128::from(ticks) - i128::from(first.ticks);
        let since_ns = match self.last {
            Some(last) => {
                let rise = i128::from(last.monotonic_ns - first.monotonic_ns);
                ticks_since.saturating_mul(rise) / i128::from(last.ticks - first.ticks)
            }
            None => ticks_since,
        };
        u64::try_from((i128::from(first.realtime_ns).saturating_add(since_ns)).max(0))
            .unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn anchor(ticks: u64, monotonic_ns: u64) -> Anchor {
        Anchor {
            ticks,
            monotonic_ns,
            realtime_ns: 1_000_000 + monotonic_ns,
        }
    }

    #[test]
    fn two_anchors_make_a_line() {
        let mut clock = TickClock::default();
        clock.add(anchor(3000, 1000));
        clock.add(anchor(9000, 3000));
        assert_eq!(clock.at(6000), 1_002_000);
        assert_eq!(clock.at(0), 1_000_000);
        assert_eq!(clock.at(12_000), 1_004_000);
    }

    #[test]
    fn one_anchor_is_an_offset() {
        let mut clock = TickClock::default();
        clock.add(anchor(3000, 1000));
        assert_eq!(clock.at(3007), 1_001_007);
    }

    #[test]
    fn anchors_out_of_order_and_extremes_do_no_harm() {
        let mut clock = TickClock::default();
        clock.add(anchor(3000, 1000));
        clock.add(anchor(2000, 5000));
        clock.add(anchor(3000, 5000));
        assert_eq!(clock.at(3007), 1_001_007);
        clock.add(Anchor {
            ticks: 3001,
            monotonic_ns: u64::MAX,
            realtime_ns: 0,
        });
        assert_eq!(clock.at(u64::MAX), u64::MAX);
        assert_eq!(clock.at(0), 0);
    }
}
