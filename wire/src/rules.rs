//! The rule table: what each kind of event creates, destroys and attaches.
//!
//! One table, read by [`crate::live::LiveTable`], which both the shim's ledger and the collector's model use.

use crate::event::Kind;

/// What can be alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Object {
    /// A context. Key: its handle.
    Context = 1,
    /// Device memory. Key: its address.
    DeviceAllocation = 2,
    /// Managed memory. Key: its address.
    ManagedAllocation = 3,
    /// Stream-ordered memory. Key: its address.
    PoolBlock = 4,
    /// A memory pool. Key: its handle.
    Pool = 5,
    /// Physical memory. Key: the number of the event that made it, since a handle may be used again while mappings of its
    /// former holder live on.
    Physical = 6,
    /// A reserved address range: no memory. Key: its address.
    Reservation = 7,
    /// A mapping of physical memory: no memory of its own. Key: its address.
    Mapping = 8,
    /// A block of a framework's allocator, which lies inside one of the above. Key: its address.
    Block = 9,
    /// Pinned host memory. Key: its address.
    PinnedHost = 10,
    /// Host memory of the program's own that is pinned. Key: its address.
    RegisteredHost = 11,
}

impl Object {
    /// Whether its bytes are device memory taken from the driver, rather than an address range, an alias or a part of another
    /// object.
    pub const fn is_driver_memory(self) -> bool {
        matches!(
            self,
            Self::DeviceAllocation | Self::ManagedAllocation | Self::PoolBlock | Self::Physical
        )
    }
}

/// What an event does to the live table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An object is born. Word 0 is its address or handle, word 1 its bytes where it has any.
    Create(Object),
    /// The object with the key of word 0 dies; of several kinds the first that has it.
    Destroy(&'static [Object]),
    /// A mapping (word 0: address, 1: bytes, 2: handle) is born and keeps its physical memory alive.
    Map,
    /// All mappings inside a range (word 0: address, 1: bytes) die.
    Unmap,
    /// The physical memory with the handle of word 0 gains a reference.
    AddReference,
    /// The physical memory with the handle of word 0 loses a reference.
    DropReference,
    /// The primary context of the event's device gains a reference (word 0: its handle).
    RetainPrimary,
    /// The primary context of the event's device loses a reference; with the last it dies.
    ReleasePrimary,
    /// The primary context of the event's device dies.
    ResetPrimary,
    /// The context of word 0 dies, and what it owns.
    DestroyContext,
    /// What the event numbered by word 0 did is taken back.
    Undo,
    /// Nothing.
    Nothing,
}

/// The rule of a kind.
pub const fn action(kind: Kind) -> Action {
    match kind {
        Kind::ContextCreate => Action::Create(Object::Context),
        Kind::ContextDestroy => Action::DestroyContext,
        Kind::PrimaryRetain => Action::RetainPrimary,
        Kind::PrimaryRelease => Action::ReleasePrimary,
        Kind::PrimaryReset => Action::ResetPrimary,
        Kind::DeviceAlloc => Action::Create(Object::DeviceAllocation),
        Kind::ManagedAlloc => Action::Create(Object::ManagedAllocation),
        Kind::Free => Action::Destroy(&[
            Object::DeviceAllocation,
            Object::PoolBlock,
            Object::ManagedAllocation,
        ]),
        Kind::HostAlloc => Action::Create(Object::PinnedHost),
        Kind::HostFree => Action::Destroy(&[Object::PinnedHost]),
        Kind::HostRegister => Action::Create(Object::RegisteredHost),
        Kind::HostUnregister => Action::Destroy(&[Object::RegisteredHost]),
        Kind::PoolAlloc => Action::Create(Object::PoolBlock),
        Kind::PoolCreate => Action::Create(Object::Pool),
        Kind::PoolDestroy => Action::Destroy(&[Object::Pool]),
        Kind::PhysicalCreate => Action::Create(Object::Physical),
        Kind::PhysicalRetain => Action::AddReference,
        Kind::PhysicalRelease => Action::DropReference,
        Kind::Reserve => Action::Create(Object::Reservation),
        Kind::Unreserve => Action::Destroy(&[Object::Reservation]),
        Kind::Map => Action::Map,
        Kind::Unmap => Action::Unmap,
        Kind::BlockAlloc => Action::Create(Object::Block),
        Kind::BlockFree => Action::Destroy(&[Object::Block]),
        Kind::Undone => Action::Undo,
        Kind::AllocFailed
        | Kind::PoolTrim
        | Kind::BlockOom
        | Kind::Mark
        | Kind::UserScope
        | Kind::BackwardBegin
        | Kind::BackwardEnd
        | Kind::Finalising
        | Kind::ExitHandler
        | Kind::Gap
        | Kind::Aggregate
        | Kind::SnapshotBegin
        | Kind::SnapshotObject
        | Kind::SnapshotEnd => Action::Nothing,
    }
}
