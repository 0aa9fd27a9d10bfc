//! The live set at exit: what was alive when the program began to end.

use std::collections::BTreeMap;

use gpumem_wire::DeviceOrdinal;

use crate::model::totals::DeviceTotals;

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
    /// Whether the process said itself that it ends: then nothing that follows takes it back.
    pub is_final: bool,
}
