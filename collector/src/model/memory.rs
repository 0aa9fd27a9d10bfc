//! The memory of one process: what is alive, where it lies, and every total that follows from it.
//!
//! [`LiveTable`] alone decides what lives and dies. Each change that it reports goes through here to the place it belongs to:
//! the interval map, the totals, the history, the sums that torch's own totals are compared with.

use std::collections::{BTreeMap, HashMap};

use gpumem_wire::{
    Change, DeviceOrdinal, Event, LiveObject, LiveTable, Object, Seq, StackId, ThreadId,
};

use crate::model::address::AddressMap;
use crate::model::definitions::Definitions;
use crate::model::exit::{AtExit, ExitReason, KnownObject};
use crate::model::history::{ClockSource, History};
use crate::model::peak::{Moment, Peaks};
use crate::model::place::{Framework, Layer, PlaceId, Places};
use crate::model::provisional::Provisional;
use crate::model::selfcheck::TorchChecks;
use crate::model::totals::{DeviceTotals, Turn};

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Device, managed or stream-ordered memory, or a mapping.
    pub object: Object,
    /// Its key in the live table, which is its address.
    pub key: u64,
    /// The framework whose segment it is.
    pub segment_of: Option<Framework>,
}

/// The memory of one process.
#[derive(Default)]
pub struct Memory {
    table: LiveTable,
    places: Places,
    history: History,
    peaks: Peaks,
    extents: AddressMap<Extent>,
    /// Driver memory that became a segment because a framework's block was born in it.
    adopted: HashMap<(Object, u64), Framework>,
    totals: BTreeMap<DeviceOrdinal, DeviceTotals>,
    provisional: HashMap<DeviceOrdinal, Provisional>,
    /// Bytes of torch's segments as torch counts them: mapped bytes for expandable ones.
    torch_reserved: HashMap<DeviceOrdinal, u64>,
    checks: BTreeMap<DeviceOrdinal, TorchChecks>,
    /// Contexts that were seen being made and live.
    contexts: u64,
    at_exit: Option<AtExit>,
    last_seq: Seq,
    unknown: u64,
    changes: Vec<Change>,
}

impl Memory {
    /// Everything alive.
    pub fn table(&self) -> &LiveTable {
        &self.table
    }

    /// All places.
    pub fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn places_mut(&mut self) -> &mut Places {
        &mut self.places
    }

    /// The past of each place.
    pub fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// What each device held at its peak.
    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    pub(crate) fn peaks_mut(&mut self) -> &mut Peaks {
        &mut self.peaks
    }

    /// This moment of a device, as far as [`Peaks`] does not know it itself.
    pub(crate) fn moment(
        &self,
        device: DeviceOrdinal,
        stack: StackId,
        thread: ThreadId,
        time_ns: u64,
    ) -> Moment {
        Moment {
            time_ns,
            ticks: ClockSource::ALL.map(|source| self.history.ticks(source)),
            bytes: 0,
            in_backward: false,
            reserved_bytes: self
                .totals
                .get(&device)
                .map_or(0, |totals| totals.reserved.live_bytes),
            stack,
            thread,
        }
    }

    /// What lies where: driver memory and mappings by address.
    pub fn extents(&self) -> &AddressMap<Extent> {
        &self.extents
    }

    /// The totals by device.
    pub fn totals(&self) -> &BTreeMap<DeviceOrdinal, DeviceTotals> {
        &self.totals
    }

    /// Torch's totals against ours, by device.
    pub fn checks(&self) -> &BTreeMap<DeviceOrdinal, TorchChecks> {
        &self.checks
    }

    /// Frees, unmaps and releases of what was never seen being made.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// The framework whose segment this driver memory is.
    pub fn segment_of(&self, object: &LiveObject) -> Option<Framework> {
        let place = self.places.known(object, self.adopted(object))?;
        self.places.get(place)?.segment_of
    }

    /// The place of a live object; `None` for what holds no memory.
    pub fn place_of(&self, object: &LiveObject) -> Option<PlaceId> {
        self.places.known(object, self.adopted(object))
    }

    /// The live set at exit; `None` while nothing says that the program ends.
    pub fn at_exit(&self) -> Option<&AtExit> {
        self.at_exit.as_ref()
    }

    /// The process says that it ends: what is alive now is alive at exit, unless its last context went before.
    pub(crate) fn end(&mut self, reason: ExitReason, time_ns: u64) {
        self.history.freeze(time_ns);
        self.set_at_exit(reason, time_ns, true);
    }

    fn set_at_exit(&mut self, reason: ExitReason, time_ns: u64, is_final: bool) {
        if self.at_exit.is_none() {
            self.peaks.ends();
        }
        let at_exit = self.at_exit.get_or_insert_with(|| AtExit {
            reason,
            time_ns,
            totals: self.totals.clone(),
            seq: self.last_seq,
            given_back: Vec::new(),
            is_final,
        });
        at_exit.is_final |= is_final;
    }

    /// The program goes on after its last context went: that was not its end.
    fn go_on(&mut self, time_ns: u64) {
        if self.at_exit.as_ref().is_some_and(|exit| !exit.is_final) {
            self.at_exit = None;
            self.history.thaw(time_ns);
        }
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, definitions: &Definitions, event: &Event, time_ns: u64) {
        let mut changes = core::mem::take(&mut self.changes);
        self.table.apply(event, |change| changes.push(change));
        self.last_seq = self.last_seq.max(event.seq);
        if self.ends_last_context(&changes) {
            self.history.freeze_for_now(time_ns);
            self.set_at_exit(ExitReason::LastContext, time_ns, false);
        }
        self.history.next(event);
        for change in changes.drain(..) {
            match change {
                Change::Born(object) => self.turn(definitions, &object, Turn::Made, time_ns),
                Change::Restored(object) => {
                    self.turn(definitions, &object, Turn::Restored, time_ns);
                }
                Change::Died { object, .. } => {
                    self.turn(definitions, &object, Turn::Lost, time_ns);
                }
                Change::Unknown { .. } => self.unknown += 1,
            }
        }
        self.changes = changes;
    }

    /// Whether these changes, of which the table knows already, end the last context of a process that has memory. One that
    /// was never seen being made is known by the memory that it keeps.
    fn ends_last_context(&self, changes: &[Change]) -> bool {
        let ended = changes
            .iter()
            .filter(|change| matches!(change, Change::Died { object, .. } if object.object == Object::Context))
            .count() as u64;
        let keeps_a_context = |object: &LiveObject| {
            matches!(
                object.object,
                Object::DeviceAllocation | Object::ManagedAllocation
            )
        };
        ended > 0
            && ended >= self.contexts
            && !self.totals.is_empty()
            && !self.table.iter().any(keeps_a_context)
    }

    /// Compares torch's totals, which came with a block event that was just applied, with our sums.
    pub(crate) fn check_torch(&mut self, event: &Event, time_ns: u64) {
        let [_, _, allocated, reserved] = event.words;
        let blocks = self
            .totals
            .get(&event.device)
            .map_or(0, |totals| totals.layer(Layer::TorchBlock).live_bytes);
        let segments = self.torch_reserved.get(&event.device).copied().unwrap_or(0);
        let checks = self.checks.entry(event.device).or_default();
        let seq = event.seq.0;
        checks.allocated.check(allocated, blocks, time_ns, seq);
        checks.reserved.check(reserved, segments, time_ns, seq);
    }

    fn adopted(&self, object: &LiveObject) -> Option<Framework> {
        self.adopted.get(&(object.object, object.key)).copied()
    }

    /// One object's life changes.
    fn turn(&mut self, definitions: &Definitions, object: &LiveObject, turn: Turn, time_ns: u64) {
        let holds = object.object == Object::Context || Layer::of(object.object).is_some();
        if turn != Turn::Lost && holds {
            self.go_on(time_ns);
        }
        match object.object {
            Object::Context => {
                self.contexts = match turn {
                    Turn::Lost => self.contexts.saturating_sub(1),
                    _ => self.contexts + 1,
                };
            }
            Object::Block if turn != Turn::Lost => {
                self.adopt(definitions, object, time_ns);
            }
            _ => {}
        }
        let segment_of = self.note_extent(definitions, object, turn);
        let Some(place) = self.places.of(definitions, object, segment_of) else {
            return;
        };
        let layer_and_owner = self
            .places
            .get(place)
            .map(|place| (place.layer, place.segment_of));
        if let Some(at_exit) = &mut self.at_exit {
            let turned = KnownObject {
                object: *object,
                place,
                in_backward: self.peaks.made_in_backward(object),
            };
            at_exit.turn(turned, turn);
        }
        if let Some((layer, segment_of)) = layer_and_owner {
            let totals = self.totals.entry(object.device).or_default();
            let before = totals.live.peak();
            totals.turn(turn, layer, segment_of, object.bytes, time_ns);
            if layer != Layer::TorchBlock && !segment_of.is_some_and(Framework::blocks_are_seen) {
                let provisional = self.provisional.entry(object.device).or_default();
                let key = (object.object, object.key);
                match turn {
                    Turn::Made => provisional.born(key, object.bytes, before),
                    Turn::Lost => provisional.died(key),
                    Turn::Restored => {}
                }
            }
            if !segment_of.is_some_and(Framework::blocks_are_seen) {
                match turn {
                    Turn::Lost => self.peaks.lost(place, object),
                    _ => {
                        let (stack, thread) = (object.stack, object.thread);
                        let now = self.moment(object.device, stack, thread, time_ns);
                        self.peaks.gained(place, object, now);
                    }
                }
            }
        }
        match turn {
            Turn::Made => self.history.born(place, object, time_ns),
            Turn::Restored => self.history.restored(place, object, time_ns),
            Turn::Lost => self.history.died(place, object, time_ns),
        }
    }

    /// Keeps the interval map and torch's reserved bytes. Gives the framework that adopted the object; a dead one is an orphan
    /// from here on.
    fn note_extent(
        &mut self,
        definitions: &Definitions,
        object: &LiveObject,
        turn: Turn,
    ) -> Option<Framework> {
        let key = (object.object, object.key);
        let adopted = match turn {
            Turn::Lost => self.adopted.remove(&key),
            _ => self.adopted(object),
        };
        let is_range = matches!(
            object.object,
            Object::DeviceAllocation
                | Object::ManagedAllocation
                | Object::PoolBlock
                | Object::Mapping
        );
        if !is_range {
            return adopted;
        }
        if turn == Turn::Lost {
            let extent = self.extents.find(object.key);
            if let Some(extent) = extent.filter(|extent| extent.value.object == object.object) {
                self.extents.remove(extent.start);
                if extent.value.segment_of == Some(Framework::Torch) {
                    self.torch_reserves(object, Turn::Lost);
                }
            }
            return adopted;
        }
        let segment_of = adopted.or_else(|| self.segment_by_stack(definitions, object));
        let extent = Extent {
            object: object.object,
            key: object.key,
            segment_of,
        };
        // What is overlapped here was freed out of our sight. It stays in the live table, which is the judge of that, but
        // torch can no longer count it.
        for ghost in self.extents.insert(object.key, object.bytes, extent) {
            if ghost.value.segment_of == Some(Framework::Torch)
                && let Some(&ghost) = self.table.get(ghost.value.object, ghost.value.key)
            {
                self.torch_reserves(&ghost, Turn::Lost);
            }
        }
        if segment_of == Some(Framework::Torch) {
            self.torch_reserves(object, turn);
        }
        adopted
    }

    /// The framework whose allocator made this memory or mapped it.
    fn segment_by_stack(
        &mut self,
        definitions: &Definitions,
        object: &LiveObject,
    ) -> Option<Framework> {
        let layer = match object.object {
            Object::Mapping => Layer::Physical,
            other => Layer::of(other)?,
        };
        self.places
            .framework(definitions, layer, object.stack)
            .or_else(|| {
                let owner = (object.object == Object::Mapping)
                    .then(|| self.table.get(Object::Physical, object.owner))??;
                let (stack, adopted) = (owner.stack, self.adopted(owner));
                adopted.or_else(|| self.places.framework(definitions, layer, stack))
            })
    }

    fn torch_reserves(&mut self, object: &LiveObject, turn: Turn) {
        let reserved = self.torch_reserved.entry(object.device).or_default();
        *reserved = match turn {
            Turn::Lost => reserved.saturating_sub(object.bytes),
            _ => reserved.saturating_add(object.bytes),
        };
    }

    /// A torch block is born: what it lies in is a segment of torch's, whoever made it. A block in an expandable segment may
    /// lie in many mappings.
    fn adopt(&mut self, definitions: &Definitions, block: &LiveObject, time_ns: u64) {
        let end = block.key.saturating_add(block.bytes);
        let mut at = block.key;
        while let Some(extent) = self.extents.find(at) {
            if extent.value.segment_of != Some(Framework::Torch) {
                self.adopt_extent(definitions, extent.value, time_ns);
            } else if !self.is_adopted(extent.value) {
                // Its stack says that it is torch's, and then those of its neighbours do.
                return;
            }
            if extent.value.object != Object::Mapping || extent.end >= end {
                return;
            }
            at = extent.end;
        }
    }

    fn is_adopted(&self, extent: Extent) -> bool {
        let memory = match extent.object {
            Object::Mapping => self
                .table
                .get(Object::Mapping, extent.key)
                .map(|mapping| (Object::Physical, mapping.owner)),
            object => Some((object, extent.key)),
        };
        memory.is_some_and(|key| self.adopted.contains_key(&key))
    }

    fn adopt_extent(&mut self, definitions: &Definitions, extent: Extent, time_ns: u64) {
        let Extent { object, key, .. } = extent;
        if let Some(extent) = self.extents.find_mut(key) {
            extent.segment_of = Some(Framework::Torch);
        }
        let Some(&range) = self.table.get(object, key) else {
            return;
        };
        self.torch_reserves(&range, Turn::Made);
        let memory = if object == Object::Mapping {
            self.table.get(Object::Physical, range.owner).copied()
        } else {
            Some(range)
        };
        let Some(memory) = memory else { return };
        let before = self.adopted(&memory);
        let Some(old) = self.places.of(definitions, &memory, before) else {
            return;
        };
        let adopted = Some(Framework::Torch);
        let Some(new) = self.places.of(definitions, &memory, adopted) else {
            return;
        };
        self.adopted
            .insert((memory.object, memory.key), Framework::Torch);
        if old == new {
            return;
        }
        let was_opaque = self
            .places
            .get(old)
            .is_some_and(|place| place.segment_of.is_some());
        let totals = self.totals.entry(memory.device).or_default();
        totals.adopted(memory.bytes, was_opaque);
        if let Some(provisional) = self.provisional.get_mut(&memory.device) {
            provisional.adopted((memory.object, memory.key), &mut totals.live);
        }
        let now = self.moment(memory.device, memory.stack, memory.thread, time_ns);
        self.peaks.never_counted(old, &memory, now);
        self.history.died(old, &memory, time_ns);
        self.history.born(new, &memory, time_ns);
    }
}
