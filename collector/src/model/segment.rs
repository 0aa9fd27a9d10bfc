//! Segments: contiguous device memory as its owner took it from the driver, with what lies in it, as a view.

use std::collections::BTreeMap;

use gpumem_wire::{DeviceOrdinal, Object, StackId};

use crate::model::place::Framework;
use crate::model::process::Process;

/// A block in no known segment makes one that reaches from and to a multiple of this: the driver's own granule.
const INFERRED_GRANULE_BYTES: u64 = 2 << 20;

/// Whose a segment is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A framework's caching allocator.
    Framework(Framework),
    /// The module, by its path, that called the driver.
    Module(String),
    /// It cannot be told.
    Unknown,
}

/// Contiguous device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first address.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Its device.
    pub device: DeviceOrdinal,
    /// What it is made of; `None` for one that is only inferred from the blocks in it.
    pub kind: Option<Object>,
    /// Whose it is.
    pub owner: Owner,
    /// From where its first part was made.
    pub stack: StackId,
    /// When its first part was made, in nanoseconds since the epoch.
    pub born_ns: u64,
    /// Bytes of framework blocks in it. Where the owner has no visible blocks all of it is in use.
    pub live_bytes: u64,
    /// Framework blocks in it.
    pub live_blocks: u64,
    /// Bytes that its owner holds for reuse.
    pub cached_bytes: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes)
    }
}

/// All segments, by address. Neighbouring mappings of one framework are one (expandable) segment.
pub fn segments(process: &Process) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for extent in process.memory().extents().iter() {
        let Some(object) = process.live().get(extent.value.object, extent.value.key) else {
            continue;
        };
        let owner = owner(process, object.stack, extent.value.segment_of);
        if let Some(last) = segments.last_mut()
            && last.kind == Some(Object::Mapping)
            && object.object == Object::Mapping
            && last.end() == extent.start
            && last.device == object.device
            && matches!(owner, Owner::Framework(_))
            && last.owner == owner
        {
            last.bytes = last.bytes.saturating_add(object.bytes);
            continue;
        }
        segments.push(Segment {
            address: extent.start,
            bytes: object.bytes,
            device: object.device,
            kind: Some(object.object),
            owner,
            stack: object.stack,
            born_ns: process.time_ns(object.born_ticks),
            live_bytes: 0,
            live_blocks: 0,
            cached_bytes: 0,
        });
    }
    fill(process, &mut segments);
    segments.sort_by_key(|segment| segment.address);
    for segment in &mut segments {
        if segment.owner == Owner::Framework(Framework::Torch) {
            segment.cached_bytes = segment.bytes.saturating_sub(segment.live_bytes);
        } else {
            segment.live_bytes = segment.bytes;
        }
    }
    segments
}

/// Adds up the blocks of each segment, and appends inferred segments for those in none.
fn fill(process: &Process, segments: &mut Vec<Segment>) {
    let mut inferred: BTreeMap<u64, Segment> = BTreeMap::new();
    let mut blocks: Vec<_> = process
        .live()
        .iter()
        .filter(|object| object.object == Object::Block)
        .collect();
    blocks.sort_by_key(|block| block.key);
    let known = segments.len();
    for block in blocks {
        let after = segments[..known].partition_point(|segment| segment.address <= block.key);
        let home = segments[..after]
            .last_mut()
            .filter(|segment| block.key < segment.end());
        if let Some(segment) = home {
            segment.live_bytes = segment.live_bytes.saturating_add(block.bytes);
            segment.live_blocks += 1;
            continue;
        }
        let start = block.key / INFERRED_GRANULE_BYTES * INFERRED_GRANULE_BYTES;
        let end = block
            .key
            .saturating_add(block.bytes)
            .checked_next_multiple_of(INFERRED_GRANULE_BYTES)
            .unwrap_or(u64::MAX);
        // Blocks come by address, so only the last one can be continued.
        match inferred.last_entry() {
            Some(mut last) if last.get().end() >= start && last.get().device == block.device => {
                let last = last.get_mut();
                last.bytes = last.end().max(end) - last.address;
                last.live_bytes = last.live_bytes.saturating_add(block.bytes);
                last.live_blocks += 1;
            }
            _ => {
                inferred.insert(
                    start,
                    Segment {
                        address: start,
                        bytes: end - start,
                        device: block.device,
                        kind: None,
                        owner: Owner::Framework(Framework::Torch),
                        stack: StackId::NONE,
                        born_ns: process.time_ns(block.born_ticks),
                        live_bytes: block.bytes,
                        live_blocks: 1,
                        cached_bytes: 0,
                    },
                );
            }
        }
    }
    segments.extend(inferred.into_values());
}

fn owner(process: &Process, stack: StackId, segment_of: Option<Framework>) -> Owner {
    if let Some(framework) = segment_of {
        return Owner::Framework(framework);
    }
    let definitions = process.definitions();
    definitions
        .stack(stack)
        .and_then(|stack| definitions.calling_module(stack))
        .map_or(Owner::Unknown, |module| Owner::Module(module.path.clone()))
}
