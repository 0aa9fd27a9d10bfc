//! Blocks: every piece of live memory, as a view.

use gpumem_wire::{DeviceOrdinal, LiveObject, Object, StackId, ThreadId};

use crate::model::exit::KnownObject;
use crate::model::history::ClockSource;
use crate::model::peak::{Holder, Share};
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
    /// The step in which it was made, by each clock (see [`Block::step`]).
    steps: [Option<u32>; ClockSource::ALL.len()],
    /// From where it was made.
    pub stack: StackId,
    /// On which thread.
    pub thread: ThreadId,
    /// Its place.
    pub place: PlaceId,
    /// Whether it was made while a backward pass ran.
    pub in_backward: bool,
    /// The stream that stream-ordered memory was allocated on, 0 for the default one; `None` for other memory.
    pub stream: Option<u64>,
    /// The framework whose segment it is.
    pub segment_of: Option<Framework>,
}

impl Block {
    /// The step of a clock in which it was made, where that is known.
    pub fn step(&self, clock: ClockSource) -> Option<u32> {
        self.steps[clock.index()]
    }

    /// The block as a share of its holder's memory.
    pub fn share(&self, process: &Process) -> Share {
        let holder = Holder {
            place: self.place,
            stack: self.stack,
            in_backward: self.in_backward,
        };
        Share {
            holder,
            bytes: self.bytes,
            blocks: 1,
            kept: process.memory().peaks().kept(self.device, holder),
        }
    }
}

/// All live memory, in no order: framework blocks, and driver memory whether or not blocks lie in it.
pub fn blocks(process: &Process) -> impl Iterator<Item = Block> + '_ {
    process
        .live()
        .iter()
        .filter_map(|object| block(process, live(process, object)?))
}

/// The same of the moment when the process began to end, if it did; else of now.
pub fn blocks_at_exit(process: &Process) -> Vec<Block> {
    let Some(at_exit) = process.at_exit() else {
        return blocks(process).collect();
    };
    process
        .live()
        .iter()
        .filter(|object| at_exit.had(object))
        .filter_map(|object| live(process, object))
        .chain(at_exit.given_back.iter().copied())
        .filter_map(|known| block(process, known))
        .collect()
}

fn live(process: &Process, object: &LiveObject) -> Option<KnownObject> {
    Some(KnownObject {
        object: *object,
        place: process.memory().place_of(object)?,
        in_backward: process.memory().peaks().made_in_backward(object),
    })
}

fn block(process: &Process, known: KnownObject) -> Option<Block> {
    let KnownObject {
        object,
        place,
        in_backward,
    } = known;
    Some(Block {
        address: object.value,
        bytes: object.bytes,
        layer: Layer::of(object.object)?,
        device: object.device,
        born_ns: process.time_ns(object.born_ticks),
        born_seq: object.born.0,
        steps: ClockSource::ALL.map(|clock| process.history().birth_step(&object, clock)),
        stack: object.stack,
        thread: object.thread,
        place,
        in_backward,
        stream: (object.object == Object::PoolBlock).then_some(object.stream),
        segment_of: process.places().get(place)?.segment_of,
    })
}
