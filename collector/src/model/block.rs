//! Blocks: every piece of live memory, as a view.

use gpumem_wire::{DeviceOrdinal, LiveObject, StackId, ThreadId};

use crate::model::place::{Framework, Layer, PlaceId};
use crate::model::process::Process;

/// One live piece of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its address, or its handle in [`Layer::Physical`].
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its layer.
    pub layer: Layer,
    /// Its device.
    pub device: DeviceOrdinal,
    /// When it was made, in nanoseconds since the epoch.
    pub born_ns: u64,
    /// The number of the event that made it.
    pub born_seq: u64,
    /// From where it was made.
    pub stack: StackId,
    /// On which thread.
    pub thread: ThreadId,
    /// Its place.
    pub place: PlaceId,
    /// The framework whose segment it is.
    pub segment_of: Option<Framework>,
}

/// All live memory, in no order: framework blocks, and driver memory whether or not blocks lie in it.
pub fn blocks(process: &Process) -> impl Iterator<Item = Block> + '_ {
    process
        .live()
        .iter()
        .filter_map(|object| block(process, object))
}

fn block(process: &Process, object: &LiveObject) -> Option<Block> {
    let place = process.memory().place_of(object)?;
    Some(Block {
        address: object.value,
        bytes: object.bytes,
        layer: Layer::of(object.object)?,
        device: object.device,
        born_ns: process.time_ns(object.born_ticks),
        born_seq: object.born.0,
        stack: object.stack,
        thread: object.thread,
        place,
        segment_of: process.places().get(place)?.segment_of,
    })
}
