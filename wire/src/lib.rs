//! What crosses a process boundary in gpumem.
//!
//! The shim writes these bytes inside the target, the collector reads them: over a Unix socket, from a spool file, from a
//! capture. Nothing here does I/O and nothing here trusts its input: every decoder checks limits and answers with a typed
//! [`error::WireError`].
//!
//! Data enters as [`event::Event`]s and [`define::Definition`]s and leaves as [`chunk::Chunk`]s, or the other way round.
//! [`rules`] says what each kind of event creates and destroys, and [`live`] applies those rules: the shim's ledger and the
//! collector's model use the same table, so the two cannot drift apart.
#![forbid(unsafe_code)]

pub mod chunk;
pub mod codec;
pub mod columns;
pub mod define;
pub mod error;
pub mod event;
pub mod ids;
pub mod limits;
pub mod live;
pub mod places;
pub mod rules;

pub use chunk::{Chunk, ChunkHeader, ChunkKind};
pub use define::{Definition, Frame};
pub use error::WireError;
pub use event::{Event, Flags, Kind};
pub use ids::{Address, ApiId, CodeId, DeviceOrdinal, Handle, ModuleId, Seq, StackId, ThreadId};
pub use live::{Change, LiveObject, LiveTable};
pub use rules::Object;
