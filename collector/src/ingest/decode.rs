//! A chunk becomes definitions or events, and those become a model.

use gpumem_wire::define::{self, Anchor};
use gpumem_wire::{Chunk, ChunkKind, Definition, Event, WireError, columns};

use crate::model::Session;

/// Bytes of definitions of all processes of a session that are kept, as they lie in memory, about.
const DEFINITION_BYTES: usize = 1 << 30;

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

    /// Gives all of it to a process of a session. Definitions beyond what a session keeps are left out, with a note; what the
    /// process is and how it ended is always taken.
    pub fn feed(self, session: &mut Session, index: usize) {
        let Some(process) = session.processes.get_mut(index) else {
            return;
        };
        match self {
            Self::Definitions { definitions, .. } => {
                let mut left_out = false;
                for definition in definitions {
                    let is_figure = matches!(
                        definition,
                        Definition::Process(_) | Definition::Python(_) | Definition::End(_)
                    );
                    if !is_figure && session.definition_bytes >= DEFINITION_BYTES {
                        left_out = true;
                        continue;
                    }
                    let before = process.definitions().bytes();
                    process.define(definition);
                    session.definition_bytes += process.definitions().bytes() - before;
                }
                if left_out {
                    session.note_once(
                        "there are too many names: some stacks and lines are not shown".into(),
                    );
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
