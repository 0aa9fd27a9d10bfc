//! The last walk of this thread, to be believed as far as it still holds.
//!
//! Two allocations in a row usually share most of their stack. Where a walk comes to the very registers that the last walk
//! came to, that walk's step is taken again if the words it read are unchanged: two loads that need not wait for each other,
//! in place of a table look-up and a chain of loads.

use super::walker::{Found, Walker};
use super::{Bounds, Registers, Step};
use crate::stack::fold::Fold;

/// Frames of a walk that are remembered. Deeper ones are walked by rule every time.
const REMEMBERED: usize = 192;

/// Frames of one walk at most: a bound on the time of a hook.
pub(crate) const DEEPEST: usize = 16_384;

/// The steps of one walk, innermost first. All zeros is an empty one.
struct Trail {
    length: usize,
    steps: [Step; REMEMBERED],
}

/// The last walk and the one in the making.
pub(crate) struct Replay {
    epoch: u64,
    current: usize,
    trails: [Trail; 2],
}

impl Replay {
    /// Forgets the last walk; needed when another thread takes over this memory.
    pub(crate) fn clear(&mut self) {
        for trail in &mut self.trails {
            trail.length = 0;
        }
    }

    /// Walks from `start` outwards up to the frame that contains the stack address `stop` or to the end, and folds the return
    /// address of every frame on the way.
    #[inline(always)]
    pub(crate) fn walk(
        &mut self,
        start: Registers,
        stop: u64,
        bounds: Bounds,
        epoch: u64,
        fold: &mut Fold,
    ) {
        let Some(mut walker) = Walker::new(start, bounds, epoch) else {
            return;
        };
        if self.epoch != epoch {
            self.epoch = epoch;
            self.clear();
        }
        self.current ^= 1;
        let [first, second] = &mut self.trails;
        let (new, old) = if self.current == 0 {
            (first, &*second)
        } else {
            (second, &*first)
        };
        let old = old.steps.get(..old.length).unwrap_or(&[]);
        new.length = walk_along(&mut walker, old, &mut new.steps, stop, fold);
        if new.length == REMEMBERED {
            walk_on(walker, stop, fold);
        }
    }
}

/// Walks, taking the steps of the `old` walk again where they hold, until `new` is full or the walk ends. Gives the number of
/// steps written to `new`.
#[inline(always)]
fn walk_along(
    walker: &mut Walker,
    mut old: &[Step],
    new: &mut [Step],
    stop: u64,
    fold: &mut Fold,
) -> usize {
    let mut length = 0;
    fold.word(walker.at().ip);
    while let Some(mut room) = new.get_mut(length) {
        let at = walker.at();
        while let Some((step, outer)) = old.split_first()
            && step.at.sp < at.sp
        {
            old = outer;
        }
        if old.first().is_some_and(|step| step.at == at) && !walker.is_exact() {
            // Each old step begins where the one before it led, so registers need not be compared again.
            while let Some((step, outer)) = old.split_first() {
                // SAFETY: the step was taken on this thread's stack, at the stack pointer at which the walk stands.
                if !unsafe { step.still_holds() } {
                    break;
                }
                if step.next.sp > stop {
                    return length;
                }
                *room = *step;
                walker.follow(step);
                fold.word(step.next.ip);
                old = outer;
                length += 1;
                match new.get_mut(length) {
                    Some(next) => room = next,
                    None => return length,
                }
            }
        }
        match walker.advance() {
            Found::Inner(step) if step.next.sp <= stop => {
                *room = step;
                fold.word(step.next.ip);
            }
            _ => return length,
        }
        length += 1;
    }
    length
}

/// The part of a very deep stack that is not remembered, from behind the frame that the walker stands in.
#[cold]
#[inline(never)]
fn walk_on(mut walker: Walker, stop: u64, fold: &mut Fold) {
    for _ in REMEMBERED..DEEPEST {
        match walker.advance() {
            Found::Inner(step) if step.next.sp <= stop => fold.word(step.next.ip),
            _ => return,
        }
    }
}
