//! Memory that may yet turn out to be a segment, and the peak without it.
//!
//! Without stacks a framework's segment looks like the program's own memory until a block is born in it. What is in use has
//! then counted the whole segment for a while, and the peak with it. To take that back, the peak as it was before each such
//! birth is kept: before the birth nothing changes; since then the segment was in every sum.

use std::collections::VecDeque;

use gpumem_wire::Object;

use crate::model::totals::{Gauge, Peak};

/// Allocations remembered for each device. A framework uses what it takes at once, so the latest suffice.
const REMEMBERED: usize = 512;

/// One allocation that counts as in use by itself so far.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    key: (Object, u64),
    bytes: u64,
    /// The peak of what was in use, up to its birth.
    before: Peak,
}

/// The latest such allocations of one device, in the order of their birth.
#[derive(Debug, Default)]
pub(crate) struct Provisional(VecDeque<Candidate>);

impl Provisional {
    /// An allocation is about to count as in use.
    pub(crate) fn born(&mut self, key: (Object, u64), bytes: u64, before: Peak) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back(Candidate { key, bytes, before });
    }

    /// It is gone: that it was in use until then stays true.
    pub(crate) fn died(&mut self, key: (Object, u64)) {
        if let Some(index) = self.position(key) {
            self.0.remove(index);
        }
    }

    /// It is a segment and never was in use itself: takes it out of the peak, and out of the peaks kept for later births.
    pub(crate) fn adopted(&mut self, key: (Object, u64), live: &mut Gauge) {
        let Some((index, gone)) = self
            .position(key)
            .and_then(|index| Some((index, self.0.remove(index)?)))
        else {
            return;
        };
        for later in self.0.range_mut(index..) {
            later.before = later.before.without(gone.bytes, gone.before);
        }
        live.set_peak(live.peak().without(gone.bytes, gone.before));
    }

    fn position(&self, key: (Object, u64)) -> Option<usize> {
        self.0.iter().rposition(|candidate| candidate.key == key)
    }
}
