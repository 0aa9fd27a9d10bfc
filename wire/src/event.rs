//! The event record: 64 bytes, the same in a ring of the target and in a reader's memory.

use crate::ids::{ApiId, DeviceOrdinal, Seq, StackId, ThreadId};

/// One thing that happened in the target. A header of 32 bytes and four words whose meaning the kind gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Event {
    /// The order of this event among all threads of the process.
    pub seq: Seq,
    /// When, in ticks of the process's clock (see [`crate::define::Anchor`]).
    pub time: u64,
    /// Which thread.
    pub thread: ThreadId,
    /// From where, or [`StackId::NONE`].
    pub stack: StackId,
    /// A [`Kind`] as a number: a reader meets numbers that it does not know yet.
    pub kind: u16,
    /// Which entry point made it.
    pub api: ApiId,
    /// On which device.
    pub device: DeviceOrdinal,
    /// [`Flags`].
    pub flags: Flags,
    /// Meaning by kind, see [`Kind`].
    pub words: [u64; 4],
}

/// Bytes of an [`Event`].
pub const EVENT_BYTES: usize = 64;
const _: () = assert!(core::mem::size_of::<Event>() == EVENT_BYTES);

impl Event {
    /// The kind, or `None` for one that this build does not know.
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.kind)
    }
}

/// Facts about an event that fit a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Flags(pub u16);

impl Flags {
    /// The entry point works on the per-thread default stream (`_ptsz`).
    pub const PER_THREAD_STREAM: Self = Self(1);
    /// The interpreter was finalising.
    pub const FINALISING: Self = Self(1 << 1);
    /// The block was freed while Python's cycle collector ran.
    pub const DURING_GC: Self = Self(1 << 2);
    /// The stream of the call was being captured into a graph.
    pub const CAPTURING: Self = Self(1 << 3);
    /// `backward` was called with `keep_graph` (retain_graph=True).
    pub const KEEP_GRAPH: Self = Self(1 << 4);
    /// `backward` was called with `create_graph`.
    pub const CREATE_GRAPH: Self = Self(1 << 5);

    /// Whether all bits of `other` are set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What happened. The numbers never change; a new layout is a new kind, an unknown number is skipped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $name = $number,)* }

        impl Kind {
            /// Every kind, in the order of the numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The kind with this number.
            pub const fn from_number(number: u16) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }
        }
    };
}

kinds! {
    /// A context was made. Words: context handle, creation flags.
    ContextCreate = 1,
    /// A context is about to be destroyed, and everything that it owns with it. Words: context handle.
    ContextDestroy = 2,
    /// The primary context of a device was retained. Words: context handle.
    PrimaryRetain = 3,
    /// The primary context of a device is about to be released; the last release destroys it. No words.
    PrimaryRelease = 4,
    /// The primary context of a device is about to be reset, whoever retains it. No words.
    PrimaryReset = 5,

    /// Device memory was allocated. Words: address, bytes taken, context handle, bytes asked for.
    DeviceAlloc = 16,
    /// Managed memory was allocated. Words: address, bytes, context handle, attach flags.
    ManagedAlloc = 17,
    /// Memory of any address kind is about to be freed. Words: address, stream handle (0: synchronous).
    Free = 18,
    /// An allocation failed. Words: bytes asked for, CUresult, the [`crate::Object`] asked for as a number.
    AllocFailed = 19,

    /// Host memory was allocated, pinned. Words: address, bytes, context handle, flags of `cuMemHostAlloc`.
    HostAlloc = 20,
    /// Pinned host memory is about to be freed. Words: address.
    HostFree = 21,
    /// Host memory of the program's own was pinned. Words: address, bytes, context handle, flags of `cuMemHostRegister`.
    HostRegister = 22,
    /// Host memory is about to be unpinned. Words: address.
    HostUnregister = 23,

    /// Stream-ordered memory was allocated. Words: address, bytes, pool handle (0: the device's current pool), stream handle.
    PoolAlloc = 24,
    /// A memory pool was made. Words: pool handle.
    PoolCreate = 25,
    /// A memory pool is about to be destroyed. Words: pool handle.
    PoolDestroy = 26,
    /// A memory pool was trimmed. Words: pool handle, bytes to keep.
    PoolTrim = 27,

    /// Physical memory was made. Words: allocation handle, bytes, `CUmemLocationType`, allocation type flags.
    PhysicalCreate = 32,
    /// A further reference to physical memory was taken. Words: allocation handle, address that it was looked up by.
    PhysicalRetain = 33,
    /// A reference to physical memory is about to be given up. Words: allocation handle.
    PhysicalRelease = 34,
    /// An address range was reserved: no memory. Words: address, bytes, alignment.
    Reserve = 35,
    /// An address range is about to be given up. Words: address, bytes.
    Unreserve = 36,
    /// Physical memory was mapped. Words: address, bytes, allocation handle, offset.
    Map = 37,
    /// Mappings are about to be removed. Words: address, bytes; the range may cover several mappings.
    Unmap = 38,

    /// The call that event `words[0]` announced failed: what it said did not happen. Words: its number, CUresult.
    Undone = 48,

    /// A framework handed out a block of its own memory. Words: address, bytes, the framework's total of live bytes on this
    /// device after it, its total of reserved bytes.
    BlockAlloc = 64,
    /// A framework took a block back. Words: as [`Kind::BlockAlloc`], the totals after it.
    BlockFree = 65,
    /// A framework ran out of memory. Words: bytes asked for, live total, reserved total.
    BlockOom = 66,

    /// A phase was named by a person. Words: mark id (see [`crate::Definition::Mark`]).
    Mark = 80,
    /// A framework's user scope was entered (torch: optimizer step, zero_grad, DataLoader); the stack says which.
    UserScope = 81,
    /// A backward pass begins.
    BackwardBegin = 82,
    /// A backward pass ended, or was left by an exception. Words: the number of its begin.
    BackwardEnd = 83,

    /// The interpreter began to finalise: what is live now is live "at exit".
    Finalising = 96,
    /// The process runs its exit handlers: what is live now is live "at exit", unless Finalising came before.
    ExitHandler = 97,
    /// Events were lost. Words: allocations lost, frees lost, other events lost.
    Gap = 98,

    /// Reserved: one row of an aggregate.
    Aggregate = 112,
    /// Reserved: a snapshot of the live table begins.
    SnapshotBegin = 113,
    /// Reserved: one object of a snapshot.
    SnapshotObject = 114,
    /// Reserved: a snapshot ends.
    SnapshotEnd = 115,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_kinds_name_each_other() {
        for &kind in Kind::ALL {
            assert_eq!(Kind::from_number(kind as u16), Some(kind));
        }
        assert_eq!(Kind::from_number(9999), None);
    }
}
