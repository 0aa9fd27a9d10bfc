//! What each device held at the moment of its peak, and at its last out-of-memory.
//!
//! Nothing is copied when a new peak comes, which early in a run each allocation is. What every stack holds carries the number
//! of the peak that it was last written down for; the first change after a peak writes down what stood before it. So an event
//! costs the same however much is alive, and memory grows with distinct stacks alone.

use std::collections::{BTreeMap, HashMap, HashSet};

use gpumem_wire::{DeviceOrdinal, LiveObject, Object, StackId, ThreadId};

use crate::model::history::ClockSource;
use crate::model::place::PlaceId;

/// Who holds a share: a stack, and whether it was a backward pass that ran it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Holder {
    /// Its place.
    pub place: PlaceId,
    /// Its stack.
    pub stack: StackId,
    /// Whether it was made while a backward pass ran.
    pub in_backward: bool,
}

/// Memory that one holder had at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Who.
    pub holder: Holder,
    /// Bytes then.
    pub bytes: u64,
    /// Objects then.
    pub blocks: u64,
    /// What, at any time, became of its memory.
    pub kept: Kept,
}

/// Past which moments some of a holder's memory was ever seen alive: it tells a gradient from a temporary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// When a backward pass began.
    pub at_backward: bool,
    /// When a backward pass had ended.
    pub past_backward: bool,
    /// When the program ended.
    pub at_exit: bool,
}

/// A moment of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    /// How often each clock had ticked, in the order of [`ClockSource::ALL`].
    pub ticks: [u32; ClockSource::ALL.len()],
    /// Bytes in use, see [`crate::model::totals::DeviceTotals::live`].
    pub bytes: u64,
    /// Bytes taken from the driver.
    pub reserved_bytes: u64,
    /// What was running: the stack of the last allocation.
    pub stack: StackId,
    /// On which thread.
    pub thread: ThreadId,
    /// Whether a backward pass ran.
    pub in_backward: bool,
}

/// A moment with all that was held then.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// When, and how much.
    pub moment: Moment,
    /// All that was held, in the order of the holders.
    pub shares: Vec<Share>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Amount {
    bytes: u64,
    blocks: u64,
}

/// What one holder has.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    now: Amount,
    /// What it had at peak number `written_for`.
    then: Amount,
    written_for: u64,
    kept: Kept,
}

impl Held {
    fn write_down(&mut self, peak: u64) {
        if self.written_for != peak {
            self.then = self.now;
            self.written_for = peak;
        }
    }

    fn at(&self, peak: u64) -> Amount {
        if self.written_for == peak {
            self.then
        } else {
            self.now
        }
    }
}

/// One device.
#[derive(Debug, Default)]
struct Device {
    held: HashMap<Holder, Held>,
    live_bytes: u64,
    peak: Moment,
    /// The number of the event that made the peak.
    peak_seq: u64,
    /// How many peaks there were.
    peaks: u64,
    out_of_memory: Option<Picture>,
    framework_ran_out: bool,
}

impl Device {
    fn shares(&self, amount: impl Fn(&Held) -> Amount) -> Vec<Share> {
        let mut shares: Vec<Share> = self
            .held
            .iter()
            .filter_map(|(&holder, held)| {
                let Amount { bytes, blocks } = amount(held);
                (bytes > 0).then_some(Share {
                    holder,
                    bytes,
                    blocks,
                    kept: held.kept,
                })
            })
            .collect();
        shares.sort_unstable_by_key(|share| share.holder);
        shares
    }
}

/// The peaks of one process, by device.
#[derive(Debug, Default)]
pub struct Peaks {
    devices: BTreeMap<DeviceOrdinal, Device>,
    in_backward: bool,
    passes_ended: u64,
    /// Live objects that a backward pass made.
    made_in_backward: HashSet<(Object, u64)>,
}

impl Peaks {
    /// The devices that ever held anything.
    pub fn devices(&self) -> impl Iterator<Item = DeviceOrdinal> + '_ {
        self.devices.keys().copied()
    }

    /// How many backward passes were seen to end.
    pub fn passes_ended(&self) -> u64 {
        self.passes_ended
    }

    /// The peak of a device.
    pub fn peak(&self, device: DeviceOrdinal) -> Option<Picture> {
        let device = self.devices.get(&device)?;
        Some(Picture {
            moment: device.peak,
            shares: device.shares(|held| held.at(device.peaks)),
        })
    }

    /// The last time that a framework's allocator ran out of the device's memory; where none ever did, the last time that an
    /// allocation failed.
    pub fn out_of_memory(&self, device: DeviceOrdinal) -> Option<&Picture> {
        self.devices.get(&device)?.out_of_memory.as_ref()
    }

    /// Whether a live object was made while a backward pass ran.
    pub fn made_in_backward(&self, object: &LiveObject) -> bool {
        let key = (object.object, object.key);
        self.made_in_backward.contains(&key)
    }

    /// What became of a holder's memory so far.
    pub fn kept(&self, device: DeviceOrdinal, holder: Holder) -> Kept {
        let held = self
            .devices
            .get(&device)
            .and_then(|all| all.held.get(&holder));
        held.map_or_else(Kept::default, |held| held.kept)
    }

    /// An object counts as in use from now on. `now`: this moment, as far as it is known outside.
    pub(crate) fn gained(&mut self, place: PlaceId, object: &LiveObject, now: Moment) {
        let key = (object.object, object.key);
        if self.in_backward {
            self.made_in_backward.insert(key);
        }
        let holder = self.holder(place, object);
        let device = self.devices.entry(object.device).or_default();
        let peak = device.peaks;
        let held = device.held.entry(holder).or_default();
        held.write_down(peak);
        held.now.bytes = held.now.bytes.saturating_add(object.bytes);
        held.now.blocks += 1;
        device.live_bytes = device.live_bytes.saturating_add(object.bytes);
        if device.live_bytes > device.peak.bytes {
            device.peaks += 1;
            device.peak_seq = object.born.0;
            device.peak = Moment {
                bytes: device.live_bytes,
                in_backward: self.in_backward,
                ..now
            };
        }
    }

    /// An object is gone.
    pub(crate) fn lost(&mut self, place: PlaceId, object: &LiveObject) {
        self.take(place, object);
        self.made_in_backward.remove(&(object.object, object.key));
    }

    /// An object turns out to be a segment, whose blocks count in its place: it never was in use itself. A higher peak before
    /// it is not found again; an allocator's first block comes right after its segment, so there is hardly one.
    pub(crate) fn never_counted(&mut self, place: PlaceId, object: &LiveObject, now: Moment) {
        let holder = self.holder(place, object);
        self.lost(place, object);
        let Some(device) = self.devices.get_mut(&object.device) else {
            return;
        };
        if object.born.0 > device.peak_seq {
            return;
        }
        if let Some(held) = device.held.get_mut(&holder) {
            held.then.bytes = held.then.bytes.saturating_sub(object.bytes);
            held.then.blocks = held.then.blocks.saturating_sub(1);
        }
        device.peak.bytes = device.peak.bytes.saturating_sub(object.bytes);
        if device.live_bytes > device.peak.bytes {
            device.peaks += 1;
            device.peak = Moment {
                bytes: device.live_bytes,
                in_backward: self.in_backward,
                ..now
            };
        }
    }

    /// The first backward pass begins, or the last one that was open ended.
    pub(crate) fn set_in_backward(&mut self, begins: bool) {
        self.in_backward = begins;
        self.passes_ended += u64::from(!begins);
        self.mark_kept(|kept| match begins {
            true => kept.at_backward = true,
            false => kept.past_backward = true,
        });
    }

    /// What is alive now is alive when the program ends.
    pub(crate) fn ends(&mut self) {
        self.mark_kept(|kept| kept.at_exit = true);
    }

    /// An allocation failed. `by_framework`: a framework gave up; one call of the driver may fail before its allocator empties
    /// its cache and goes on. `now`: this moment, as far as it is known outside.
    pub(crate) fn ran_out(&mut self, device: DeviceOrdinal, now: Moment, by_framework: bool) {
        let device = self.devices.entry(device).or_default();
        if device.framework_ran_out && !by_framework {
            return;
        }
        device.framework_ran_out = by_framework;
        device.out_of_memory = Some(Picture {
            moment: Moment {
                bytes: device.live_bytes,
                in_backward: self.in_backward,
                ..now
            },
            shares: device.shares(|held| held.now),
        });
    }

    fn take(&mut self, place: PlaceId, object: &LiveObject) {
        let holder = self.holder(place, object);
        let Some(device) = self.devices.get_mut(&object.device) else {
            return;
        };
        let peak = device.peaks;
        if let Some(held) = device.held.get_mut(&holder) {
            held.write_down(peak);
            held.now.bytes = held.now.bytes.saturating_sub(object.bytes);
            held.now.blocks = held.now.blocks.saturating_sub(1);
            device.live_bytes = device.live_bytes.saturating_sub(object.bytes);
        }
    }

    fn holder(&self, place: PlaceId, object: &LiveObject) -> Holder {
        Holder {
            place,
            stack: object.stack,
            in_backward: self.made_in_backward(object),
        }
    }

    fn mark_kept(&mut self, mark: impl Fn(&mut Kept)) {
        let held = self
            .devices
            .values_mut()
            .flat_map(|device| device.held.values_mut());
        for held in held.filter(|held| held.now.bytes > 0) {
            mark(&mut held.kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Process;
    use crate::model::testing::{
        MIB, Trace, backward_begin, backward_end, block, block_free, event, torch_segment,
    };
    use gpumem_wire::Kind;

    const DEVICE: DeviceOrdinal = DeviceOrdinal(0);

    fn held(process: &Process, picture: &Picture) -> Vec<(u64, u64, bool)> {
        let mut held: Vec<_> = picture
            .shares
            .iter()
            .map(|share| (share.bytes, share.blocks, share.holder.in_backward))
            .collect();
        held.sort_unstable();
        let sum: u64 = picture.shares.iter().map(|share| share.bytes).sum();
        assert_eq!(sum, picture.moment.bytes);
        assert!(process.memory().peaks().devices().eq([DEVICE]));
        held
    }

    #[test]
    fn what_was_held_at_the_peak_stays_whatever_follows() {
        let mut trace = Trace::new();
        trace.push(torch_segment(0x10_0000_0000, 64 * MIB));
        trace.push(block(0x1000, 4 * MIB).at("train.py:1"));
        trace.push(block(0x2000, 8 * MIB).at("train.py:2"));
        trace.push(block(0x3000, 8 * MIB).at("train.py:2"));
        trace.push(block_free(0x1000));
        trace.push(block_free(0x2000));
        trace.push(block(0x4000, 3 * MIB).at("train.py:3"));
        trace.push(block_free(0x3000));
        let process = trace.process();
        let peak = process.memory().peaks().peak(DEVICE).expect("a peak");
        assert_eq!(
            held(&process, &peak),
            [(4 * MIB, 1, false), (16 * MIB, 2, false)]
        );
        assert_eq!(peak.moment.bytes, 20 * MIB);
        assert_eq!(peak.moment.reserved_bytes, 64 * MIB);
        assert_eq!(peak.moment.stack, trace.events()[3].stack);
        assert_eq!(
            process.totals().get(&DEVICE).map(|all| all.live.peak_bytes),
            Some(20 * MIB)
        );
    }

    #[test]
    fn what_a_backward_pass_makes_is_told_apart() {
        let mut trace = Trace::new();
        for step in 0..2 {
            trace.push(block(0x1000, 8 * MIB).at("train.py:1"));
            trace.push(backward_begin());
            trace.push(block(0x2000 + step, 4 * MIB).at("train.py:1"));
            trace.push(block(0x3000, MIB).at("train.py:2"));
            trace.push(block_free(0x3000));
            trace.push(block_free(0x1000));
            trace.push(backward_end());
            trace.push(block_free(0x2000 + step));
        }
        let process = trace.process();
        let peak = process.memory().peaks().peak(DEVICE).expect("a peak");
        assert_eq!(
            held(&process, &peak),
            [(MIB, 1, true), (4 * MIB, 1, true), (8 * MIB, 1, false)]
        );
        let kept: Vec<Kept> = peak.shares.iter().map(|share| share.kept).collect();
        let past = |share: &Share| share.kept.past_backward;
        assert_eq!(
            peak.shares.iter().filter(|share| past(share)).count(),
            1,
            "{kept:?}"
        );
    }

    #[test]
    fn out_of_memory_keeps_its_own_picture() {
        let mut trace = Trace::new();
        trace.push(block(0x1000, 4 * MIB).at("train.py:1"));
        trace.push(block(0x2000, 4 * MIB).at("train.py:1"));
        trace.push(block_free(0x2000));
        trace.push(event(Kind::BlockOom, [9 * MIB, 4 * MIB, 4 * MIB, 0]).at("train.py:2"));
        trace.push(block_free(0x1000));
        let process = trace.process();
        let peaks = process.memory().peaks();
        let picture = peaks.out_of_memory(DEVICE).expect("a picture");
        assert_eq!(held(&process, picture), [(4 * MIB, 1, false)]);
        assert_eq!(picture.moment.stack, trace.events()[3].stack);
        assert_eq!(
            peaks.peak(DEVICE).map(|peak| peak.moment.bytes),
            Some(8 * MIB)
        );
    }
}
