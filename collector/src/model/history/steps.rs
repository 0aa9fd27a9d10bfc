//! Rows per step of a clock: how low, how high, how much came and went.

use super::thin;

/// One step, or several in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Steps that this row stands for: equal ones are folded, old ones merged.
    pub steps: u32,
    /// The least bytes alive in them.
    pub valley: u64,
    /// The most bytes alive in them.
    pub peak: u64,
    /// Bytes allocated in all of them.
    pub allocated: u64,
    /// Bytes freed in all of them.
    pub freed: u64,
    /// Objects alive at the valley.
    pub blocks: u64,
}

impl Row {
    const fn quiet(steps: u32, live_bytes: u64, blocks: u64) -> Self {
        Self {
            steps,
            valley: live_bytes,
            peak: live_bytes,
            allocated: 0,
            freed: 0,
            blocks,
        }
    }

    /// Whether `next` is more of the same, step for step.
    fn continues_as(&self, next: &Self) -> bool {
        let per_step = |row: &Self| {
            let steps = u64::from(row.steps);
            (
                row.allocated / steps,
                row.allocated % steps,
                row.freed / steps,
                row.freed % steps,
            )
        };
        (self.valley, self.peak, self.blocks) == (next.valley, next.peak, next.blocks)
            && per_step(self) == per_step(next)
    }

    fn merged(&self, next: &Self) -> Self {
        Self {
            steps: self.steps.saturating_add(next.steps),
            valley: self.valley.min(next.valley),
            peak: self.peak.max(next.peak),
            allocated: self.allocated.saturating_add(next.allocated),
            freed: self.freed.saturating_add(next.freed),
            blocks: self.blocks.min(next.blocks),
        }
    }
}

/// The rows of one place for one clock. A step in which nothing happened costs nothing until the place is used again.
#[derive(Clone, Debug, Default)]
pub struct StepRows {
    first_step: u32,
    rows: Vec<Row>,
    /// The step that is still open, and its row.
    open: Option<(u32, Row)>,
}

impl StepRows {
    /// Closes what lies before `step`, with what was alive until now.
    pub(super) fn advance(&mut self, step: u32, live_bytes: u64, blocks: u64) {
        match self.open {
            None => {
                self.first_step = step;
                self.open = Some((step, Row::quiet(1, live_bytes, blocks)));
            }
            Some((open, row)) if open < step => {
                self.push(row);
                if step - open > 1 {
                    self.push(Row::quiet(step - open - 1, live_bytes, blocks));
                }
                self.open = Some((step, Row::quiet(1, live_bytes, blocks)));
            }
            Some(_) => {}
        }
    }

    pub(super) fn allocate(&mut self, bytes: u64, live_bytes: u64, blocks: u64) {
        self.now(live_bytes, blocks, |row| {
            row.allocated = row.allocated.saturating_add(bytes)
        });
    }

    pub(super) fn free(&mut self, bytes: u64, live_bytes: u64, blocks: u64) {
        self.now(live_bytes, blocks, |row| {
            row.freed = row.freed.saturating_add(bytes)
        });
    }

    pub(super) fn restore(&mut self, bytes: u64, live_bytes: u64, blocks: u64) {
        self.now(live_bytes, blocks, |row| {
            row.freed = row.freed.saturating_sub(bytes);
        });
    }

    /// All rows with the step at which each begins, as if the clock had reached `step` with `live_bytes` alive.
    pub(super) fn closed(&self, step: u32, live_bytes: u64, blocks: u64) -> Vec<(u32, Row)> {
        let mut all = self.clone();
        all.advance(step, live_bytes, blocks);
        let open = all.open.map(|(_, row)| row);
        let mut begins = all.first_step;
        all.rows
            .into_iter()
            .chain(open)
            .map(|row| {
                let at = begins;
                begins = begins.saturating_add(row.steps);
                (at, row)
            })
            .collect()
    }

    fn now(&mut self, live_bytes: u64, blocks: u64, note: impl FnOnce(&mut Row)) {
        let Some((_, row)) = &mut self.open else {
            return;
        };
        note(row);
        row.peak = row.peak.max(live_bytes);
        if live_bytes < row.valley {
            row.valley = live_bytes;
            row.blocks = blocks;
        }
    }

    fn push(&mut self, row: Row) {
        match self.rows.last_mut() {
            Some(last) if last.continues_as(&row) => *last = last.merged(&row),
            _ => self.rows.push(row),
        }
        thin::thin(
            &mut self.rows,
            |a, b| u64::from(a.steps) + u64::from(b.steps),
            Row::merged,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_steps_fold_and_quiet_ones_cost_one_row() {
        let mut rows = StepRows::default();
        for step in 0..10 {
            rows.advance(step, 0, 0);
            rows.allocate(64, 64, 1);
            rows.free(64, 0, 0);
        }
        let folded = rows.closed(1000, 0, 0);
        let shapes: Vec<(u32, u32, u64)> = folded
            .iter()
            .map(|(at, row)| (*at, row.steps, row.allocated))
            .collect();
        assert_eq!(shapes, [(0, 10, 640), (10, 990, 0), (1000, 1, 0)]);
    }

    #[test]
    fn the_valley_is_the_least_of_the_step_and_starts_from_what_was_alive() {
        let mut rows = StepRows::default();
        rows.advance(3, 0, 0);
        rows.allocate(10, 10, 1);
        rows.advance(4, 10, 1);
        rows.allocate(10, 20, 2);
        rows.free(15, 5, 1);
        let closed = rows.closed(5, 5, 1);
        assert_eq!(
            closed[0],
            (
                3,
                Row {
                    steps: 1,
                    valley: 0,
                    peak: 10,
                    allocated: 10,
                    freed: 0,
                    blocks: 0
                }
            )
        );
        assert_eq!((closed[1].1.valley, closed[1].1.peak), (5, 20));
        assert_eq!(closed[2], (5, Row::quiet(1, 5, 1)));
    }
}
