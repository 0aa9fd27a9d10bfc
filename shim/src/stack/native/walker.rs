//! A plain walk: frame by frame, by rule.

use super::{Bounds, Registers, Rule, Step, rules, step};

/// A walk that has not ended yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walker {
    at: Registers,
    exact: bool,
    bounds: Bounds,
    epoch: u64,
}

/// What a walk found next.
pub(crate) enum Found {
    /// A frame that has a caller.
    Inner(Step),
    /// The outermost frame, or one that cannot be left.
    Last {
        /// Its instruction pointer.
        ip: u64,
        /// Whether the walk was lost here: no rule leads on, but there is a caller.
        lost: bool,
    },
}

impl Walker {
    /// A walk that begins in the frame of `start`, a function of this thread that is still running. `None` on a stack that
    /// is not the thread's own (a coroutine's, say): its bounds are unknown, so nothing may be read there.
    #[inline(always)]
    pub(crate) fn new(start: Registers, bounds: Bounds, epoch: u64) -> Option<Self> {
        bounds.holds_word(start.sp).then_some(Self {
            at: start,
            exact: true,
            bounds,
            epoch,
        })
    }

    /// The frame that the walk stands in.
    #[inline(always)]
    pub(crate) fn at(&self) -> Registers {
        self.at
    }

    /// Whether the walk stands at an exact address and not at a return address.
    #[inline(always)]
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Goes on to the caller's frame by a step that is known to lead there.
    #[inline(always)]
    pub(crate) fn follow(&mut self, step: &Step) {
        self.at = step.next;
        self.exact = false;
    }

    /// The frame that the walk stands in, leaving it for its caller if it has one.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Found {
        let rule: Rule = rules::rule(self.at.ip, self.exact, self.epoch);
        // SAFETY: the walk began in a running function of this thread within its bounds, and steps only lead upwards.
        match unsafe { step(rule, self.at, self.bounds) } {
            Some(step) => {
                self.at = step.next;
                self.exact = rule.is_signal();
                Found::Inner(step)
            }
            None => Found::Last {
                ip: self.at.ip,
                lost: rule != Rule::END,
            },
        }
    }
}
