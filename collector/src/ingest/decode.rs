//! A chunk becomes definitions or events, and those become a model.

use gpumem_wire::define::{self, Anchor};
use gpumem_wire::{Chunk, ChunkKind, Definition, Event, WireError, columns};

use crate::model::Process;

/// What was in a chunk.
#[derive(Debug)]
pub enum Decoded {
    /// Definitions; those that could not be read are counted.
    Definitions {
        /// In order.
        definitions: Vec<Definition>,
        /// Records that are damaged or of a later version.
        unreadable: usize,
    },
    /// Events.
    Events {
        /// The anchor that came with them.
        anchor: Anchor,
        /// In the order of their numbers.
        events: Vec<Event>,
    },
    /// A kind that says nothing to a model.
    Other,
}

impl Decoded {
    /// Reads a chunk's payload.
    ///
    /// # Errors
    /// As [`columns::decode`]. A bad definition costs itself alone and is no error.
    pub fn of(chunk: &Chunk) -> Result<Self, WireError> {
        match chunk.kind {
            ChunkKind::Definitions => {
                let mut unreadable = 0;
                let definitions = define::read_all(&chunk.payload)
                    .filter_map(|definition| {
                        unreadable += usize::from(definition.is_err());
                        definition.ok()
                    })
                    .collect();
                Ok(Self::Definitions {
                    definitions,
                    unreadable,
                })
            }
            ChunkKind::Events => {
                let (anchor, events) = columns::decode(&chunk.payload)?;
                Ok(Self::Events { anchor, events })
            }
            _ => Ok(Self::Other),
        }
    }

    /// Gives all of it to a model.
    pub fn feed(self, process: &mut Process) {
        match self {
            Self::Definitions { definitions, .. } => {
                for definition in definitions {
                    process.define(definition);
                }
            }
            Self::Events { anchor, events } => {
                process.anchor(anchor);
                for event in &events {
                    process.apply(event);
                }
            }
            Self::Other => {}
        }
    }
}
