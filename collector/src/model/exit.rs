//! The live set at exit: what was alive when the program began to end.

use std::collections::BTreeMap;

use gpumem_wire::{DeviceOrdinal, LiveObject, Seq};

use crate::model::place::PlaceId;
use crate::model::totals::{DeviceTotals, Turn};

/// Why the live set was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The interpreter began to finalise.
    Finalising,
    /// The process ran its exit handlers.
    ExitHandler,
    /// The last context went. A program may make a new one: as soon as it does, or holds memory again, this was not the end.
    LastContext,
}

/// The live set at exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtExit {
    /// What said so first.
    pub reason: ExitReason,
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The totals then.
    pub totals: BTreeMap<DeviceOrdinal, DeviceTotals>,
    /// The highest number of an event by then: what was born later was not alive at exit.
    pub seq: Seq,
    /// What was alive then and has died since.
    pub given_back: Vec<KnownObject>,
    /// Whether the process said itself that it ends: then nothing that follows takes it back.
    pub is_final: bool,
}

/// An object with what is known of it beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownObject {
    /// The object.
    pub object: LiveObject,
    /// Its place.
    pub place: PlaceId,
    /// Whether it was made while a backward pass ran.
    pub in_backward: bool,
}

impl AtExit {
    /// Whether an object that lives now was alive at exit.
    pub fn had(&self, object: &LiveObject) -> bool {
        object.born <= self.seq
    }

    /// An object's life changes after the exit.
    pub(crate) fn turn(&mut self, turned: KnownObject, turn: Turn) {
        let id = |of: &LiveObject| (of.object, of.key, of.born);
        match turn {
            Turn::Lost if self.had(&turned.object) => self.given_back.push(turned),
            // A free that failed in the end.
            Turn::Restored => self
                .given_back
                .retain(|known| id(&known.object) != id(&turned.object)),
            Turn::Lost | Turn::Made => {}
        }
    }
}
