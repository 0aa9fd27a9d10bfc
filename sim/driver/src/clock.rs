//! The virtual clock of the devices.
//!
//! Work takes the time that it is said to take, and nobody waits for it: time
//! passes as the host's does, and a wait for work that is not done moves the
//! clock to that work's end.

use std::time::{Duration, Instant};

/// A point of device time, from the clock's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(Duration);

impl Moment {
    /// The moment at which work ends that begins at this one.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }

    /// Milliseconds from `earlier` to this moment; below zero if it was later.
    pub(crate) fn milliseconds_since(self, earlier: Self) -> f32 {
        ((self.0.as_secs_f64() - earlier.0.as_secs_f64()) * 1e3) as f32
    }
}

/// The clock, the same for all devices.
pub(crate) struct Clock {
    started: Instant,
    skipped: Duration,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            skipped: Duration::ZERO,
        }
    }

    pub(crate) fn now(&self) -> Moment {
        Moment(self.started.elapsed().saturating_add(self.skipped))
    }

    /// Moves the clock to `moment`, unless it is past.
    pub(crate) fn skip_to(&mut self, moment: Moment) {
        let ahead = moment.0.saturating_sub(self.now().0);
        self.skipped = self.skipped.saturating_add(ahead);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_reaches_its_moment_and_never_goes_back() {
        let mut clock = Clock::new();
        let start = clock.now();
        let far = start.after(Duration::from_secs(3600));
        assert!(clock.now() < far);
        clock.skip_to(far);
        assert!(clock.now() >= far);
        clock.skip_to(start);
        assert!(clock.now() >= far);
        assert_eq!(far.milliseconds_since(start), 3.6e6);
        assert_eq!(start.milliseconds_since(far), -3.6e6);
    }
}
