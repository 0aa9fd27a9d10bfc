//! What is still alive, by the step in which it was born.

use super::thin;

/// The survivors of one step, or of several in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cohort {
    /// The first step.
    pub step: u32,
    /// Steps from the first to the last that it covers.
    pub steps: u32,
    /// Steps of it that had survivors when they were merged.
    pub filled: u32,
    /// Bytes alive.
    pub bytes: u64,
    /// Objects alive.
    pub blocks: u64,
}

impl Cohort {
    const fn end(&self) -> u32 {
        self.step.saturating_add(self.steps)
    }

    fn merged(&self, next: &Self) -> Self {
        Self {
            step: self.step,
            steps: next.end() - self.step,
            filled: self.filled + next.filled,
            bytes: self.bytes.saturating_add(next.bytes),
            blocks: self.blocks + next.blocks,
        }
    }
}

/// All cohorts of one place for one clock, in the order of their steps. Those without survivors are not kept.
#[derive(Clone, Debug, Default)]
pub struct Cohorts(Vec<Cohort>);

impl Cohorts {
    /// The cohorts.
    pub fn as_slice(&self) -> &[Cohort] {
        &self.0
    }

    pub(super) fn add(&mut self, step: u32, bytes: u64) {
        let after = self.0.partition_point(|cohort| cohort.step <= step);
        if let Some(cohort) = after.checked_sub(1).and_then(|index| self.0.get_mut(index))
            && step < cohort.end()
        {
            cohort.bytes = cohort.bytes.saturating_add(bytes);
            cohort.blocks += 1;
            return;
        }
        self.0.insert(
            after,
            Cohort {
                step,
                steps: 1,
                filled: 1,
                bytes,
                blocks: 1,
            },
        );
        thin::thin(
            &mut self.0,
            |a, b| u64::from(b.end() - a.step),
            Cohort::merged,
        );
    }

    pub(super) fn remove(&mut self, step: u32, bytes: u64) {
        let after = self.0.partition_point(|cohort| cohort.step <= step);
        let Some(index) = after.checked_sub(1) else {
            return;
        };
        let Some(cohort) = self.0.get_mut(index).filter(|cohort| step < cohort.end()) else {
            return;
        };
        cohort.bytes = cohort.bytes.saturating_sub(bytes);
        cohort.blocks = cohort.blocks.saturating_sub(1);
        cohort.filled = cohort
            .filled
            .min(u32::try_from(cohort.blocks).unwrap_or(u32::MAX));
        if cohort.blocks == 0 {
            self.0.remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_survivors_are_kept() {
        let mut cohorts = Cohorts::default();
        for step in 0..1000 {
            cohorts.add(step, 10);
            cohorts.add(step, 5);
            cohorts.remove(step, 5);
        }
        for step in 0..999 {
            if step % 10 != 0 {
                cohorts.remove(step, 10);
            }
        }
        let alive: u64 = cohorts.as_slice().iter().map(|cohort| cohort.bytes).sum();
        assert_eq!(alive, 1010);
        assert!(
            cohorts
                .as_slice()
                .iter()
                .all(|cohort| u64::from(cohort.filled) <= cohort.blocks)
        );
    }
}
