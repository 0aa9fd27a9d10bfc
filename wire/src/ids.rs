//! Newtypes for the numbers that travel: an address cannot be passed for a handle, nor a stack for a thread.

use bincode::{Decode, Encode};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A device or host virtual address in the target.
    Address(u64)
);
id!(
    /// An opaque driver handle: a context, a pool, a physical allocation, a stream.
    Handle(u64)
);
id!(
    /// The number of an event. Taken from one atomic counter in the target, so it orders all of its threads.
    Seq(u64)
);
id!(
    /// A stack as the shim interned it. 0 is "no stack", see [`StackId::NONE`].
    StackId(u32)
);
id!(
    /// A thread of the target, numbered by the shim in the order in which threads were first seen (not a kernel tid).
    ThreadId(u32)
);
id!(
    /// A Python code object, numbered by the shim.
    CodeId(u32)
);
id!(
    /// A mapped ELF object of the target, numbered by the shim.
    ModuleId(u32)
);
id!(
    /// The entry point that made an event, numbered by the shim's hook table and named by [`crate::Definition::Api`].
    ApiId(u16)
);
id!(
    /// A device as this process numbers it. See [`DeviceOrdinal::UNKNOWN`] and [`DeviceOrdinal::HOST`].
    DeviceOrdinal(i16)
);

impl StackId {
    /// No stack was taken.
    pub const NONE: Self = Self(0);
    /// A stack was taken, but the table or the arena of stacks was full.
    pub const OVERFLOW: Self = Self(1);
}

impl DeviceOrdinal {
    /// The device could not be told.
    pub const UNKNOWN: Self = Self(-1);
    /// Host memory: it belongs to no device.
    pub const HOST: Self = Self(-2);
}
