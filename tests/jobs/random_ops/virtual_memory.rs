//! Virtual memory: physical memory, address ranges and mappings, each thread its own.

use crate::Shared;
use crate::driver::{AllocationProp, Location};
use crate::random::Random;

const GRANULE: usize = 2 << 20;
/// Granules of a reserved range.
const SLOTS: usize = 6;

/// A reserved range, and which memory each of its granules shows.
struct Range {
    address: u64,
    shown: [Option<u64>; SLOTS],
}

impl Range {
    fn slot(&self, slot: usize) -> u64 {
        self.address + (slot * GRANULE) as u64
    }
}

/// A thread's ranges, and one entry for each reference to physical memory that it holds. The physical memory has one granule.
#[derive(Default)]
pub(crate) struct VirtualMemory {
    ranges: Vec<Range>,
    references: Vec<u64>,
}

impl VirtualMemory {
    pub(crate) fn step(&mut self, shared: &Shared, random: &mut Random) {
        match random.below(12) {
            0 | 1 => self.create(shared, random),
            2 => self.reserve(shared, random),
            3..6 => self.map(shared, random),
            6 | 7 => self.release(shared, random),
            8 => self.retain(shared, random),
            9 | 10 => self.unmap(shared, random),
            _ => self.unreserve(shared, random),
        }
    }

    fn create(&mut self, shared: &Shared, random: &mut Random) {
        if self.references.len() >= 40 {
            return;
        }
        let location = match random.below(4) {
            0 => Location { kind: 2, id: 0 },
            1 => Location { kind: 1, id: 1 },
            _ => Location { kind: 1, id: 0 },
        };
        let properties = AllocationProp {
            kind: 1,
            handle_types: 0,
            location,
            metadata: 0,
            flags: 0,
        };
        // Sizes that are no whole granules are refused.
        let bytes = if random.once_in(20) { 100 } else { GRANULE };
        let mut handle = 0;
        // SAFETY: the properties and the answer are local variables.
        if shared.ok(unsafe { (shared.driver.create)(&mut handle, bytes, &properties, 0) }) {
            self.references.push(handle);
        }
    }

    fn reserve(&mut self, shared: &Shared, random: &mut Random) {
        if self.ranges.len() >= 12 {
            return;
        }
        let alignment = if random.once_in(20) { 3 } else { 0 };
        let mut address = 0;
        // SAFETY: the answer goes to a local variable.
        let status =
            unsafe { (shared.driver.reserve)(&mut address, SLOTS * GRANULE, alignment, 0, 0) };
        if shared.ok(status) {
            self.ranges.push(Range {
                address,
                shown: [None; SLOTS],
            });
        }
    }

    /// Maps held memory somewhere, now and then over a mapping, which is refused.
    fn map(&mut self, shared: &Shared, random: &mut Random) {
        if self.ranges.is_empty() || self.references.is_empty() {
            return;
        }
        let (index, slot) = (random.below(self.ranges.len()), random.below(SLOTS));
        let handle = self.references[random.below(self.references.len())];
        let range = &mut self.ranges[index];
        // SAFETY: plain numbers; the range is reserved.
        let status = unsafe { (shared.driver.map)(range.slot(slot), GRANULE, 0, handle, 0) };
        if shared.ok(status) {
            range.shown[slot] = Some(handle);
        }
    }

    /// Gives up a reference, mapped or not; now and then one that nobody has.
    fn release(&mut self, shared: &Shared, random: &mut Random) {
        if random.once_in(30) {
            // SAFETY: a plain number, no handle.
            shared.ok(unsafe { (shared.driver.release)(0x77) });
            return;
        }
        if let Some(handle) = random.take(&mut self.references) {
            // SAFETY: a plain number.
            if !shared.ok(unsafe { (shared.driver.release)(handle) }) {
                self.references.push(handle);
            }
        }
    }

    /// Takes a reference by an address, be it to memory that is held by its mapping alone.
    fn retain(&mut self, shared: &Shared, random: &mut Random) {
        let Some((range, slot)) = self.any_slot(random) else {
            return;
        };
        let shown = self.ranges[range].shown[slot];
        let mut handle = 0;
        // SAFETY: the answer goes to a local variable; an address where nothing is mapped is refused.
        let status = unsafe { (shared.driver.retain)(&mut handle, self.ranges[range].slot(slot)) };
        if shared.ok(status) {
            assert_eq!(Some(handle), shown);
            self.references.push(handle);
        }
    }

    /// Unmaps one mapping or a run of them. Where nothing is mapped, or only a part, the driver refuses.
    fn unmap(&mut self, shared: &Shared, random: &mut Random) {
        let Some((range, slot)) = self.any_slot(random) else {
            return;
        };
        let count = 1 + random.below((SLOTS - slot).min(3));
        let range = &mut self.ranges[range];
        // SAFETY: plain numbers; nobody uses the memory.
        let status = unsafe { (shared.driver.unmap)(range.slot(slot), count * GRANULE) };
        if shared.ok(status) {
            range.shown[slot..slot + count].fill(None);
        }
    }

    /// Gives a range back, half the time emptied before. One with mappings is refused.
    fn unreserve(&mut self, shared: &Shared, random: &mut Random) {
        let Some(mut range) = random.take(&mut self.ranges) else {
            return;
        };
        if random.once_in(2) {
            for slot in 0..SLOTS {
                // SAFETY: plain numbers; nobody uses the memory.
                let unmap = || unsafe { (shared.driver.unmap)(range.slot(slot), GRANULE) };
                if range.shown[slot].is_some() && shared.ok(unmap()) {
                    range.shown[slot] = None;
                }
            }
        }
        // SAFETY: plain numbers.
        let status = unsafe { (shared.driver.unreserve)(range.address, SLOTS * GRANULE) };
        let gone = shared.ok(status);
        assert!(!gone || range.shown == [None; SLOTS]);
        if !gone {
            self.ranges.push(range);
        }
    }

    fn any_slot(&self, random: &mut Random) -> Option<(usize, usize)> {
        (!self.ranges.is_empty()).then(|| (random.below(self.ranges.len()), random.below(SLOTS)))
    }
}
