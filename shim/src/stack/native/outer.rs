//! The frames outside of the interpreter: how the program came to run Python at all.
//!
//! They stay the same for as long as the thread's outermost interpreter frame does, so they are walked once per such frame
//! and only checked afterwards, by re-reading the words that the walk read.

use super::walker::{Found, Walker};
use super::{Bounds, Registers, Step};
use crate::stack::fold::Fold;

/// Steps that are checked. Beyond that a stack is believed to be the same.
const CHECKED: usize = 64;

/// The outer frames of one outermost interpreter frame. All zeros is an empty entry.
struct Outer {
    /// An address within the interpreter's C frame; 0 for none.
    entry: u64,
    epoch: u64,
    /// The hash of the return addresses outside.
    hash: u64,
    length: usize,
    /// The interpreter's own step and those that follow.
    steps: [Step; CHECKED],
}

/// A few entries: a thread that a library calls Python from may do so at several depths.
pub(crate) struct OuterCache {
    entries: [Outer; 4],
}

impl OuterCache {
    /// Forgets all; needed when another thread takes over this memory.
    pub(crate) fn clear(&mut self) {
        for outer in &mut self.entries {
            outer.entry = 0;
        }
    }

    /// The hash of what lies outside of the interpreter frame that contains the stack address `entry`. `start` is the
    /// innermost frame, from which it is walked if need be.
    #[inline(always)]
    pub(crate) fn hash(&mut self, entry: u64, start: Registers, bounds: Bounds, epoch: u64) -> u64 {
        // Entries lie in different C frames, so bits above the alignment differ.
        let Some(outer) = self
            .entries
            .get_mut((entry >> 6 ^ entry >> 10) as usize & 3)
        else {
            return 0;
        };
        let mut steps = outer.steps.iter().take(outer.length);
        // SAFETY: the steps were taken on this thread's stack, from the interpreter's C frame outwards; that frame is there
        // now, since `entry` lies in it, so the stack pointer is below them all.
        let mut hold = || steps.all(|step| unsafe { step.may_still_hold() });
        if !(outer.entry == entry && outer.epoch == epoch && hold()) {
            outer.fill(entry, start, bounds, epoch);
        }
        outer.hash
    }
}

impl Outer {
    #[cold]
    #[inline(never)]
    fn fill(&mut self, entry: u64, start: Registers, bounds: Bounds, epoch: u64) {
        (self.entry, self.epoch, self.length) = (entry, epoch, 0);
        let mut fold = Fold::new();
        let mut outside = false;
        let mut walker = Walker::new(start, bounds, epoch);
        for _ in 0..super::replay::DEEPEST {
            match walker.as_mut().map(Walker::advance) {
                Some(Found::Inner(step)) => {
                    if outside {
                        fold.word(step.at.ip);
                    }
                    outside |= step.contains(entry);
                    if outside && let Some(room) = self.steps.get_mut(self.length) {
                        *room = step;
                        self.length += 1;
                    }
                }
                Some(Found::Last { ip, .. }) => {
                    if outside {
                        fold.word(ip);
                    }
                    break;
                }
                None => break,
            }
        }
        self.hash = fold.finish();
    }
}
