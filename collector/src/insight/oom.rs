//! Out of memory: the request that failed and what was in use then.

use crate::model::Process;
use crate::symbols::{Site, site};
use gpumem_wire::Kind;

/// A framework's allocator that could not serve a request, its own cache emptied.
#[derive(Clone, Debug)]
pub struct OutOfMemory {
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes in use on the device then.
    pub live_bytes: u64,
    /// Bytes taken from the driver then.
    pub reserved_bytes: u64,
    /// Whose line asked.
    pub site: Option<Site>,
}

/// The last time a process ran out of memory.
pub fn last(process: &Process) -> Option<OutOfMemory> {
    let failure = process
        .failures()
        .iter()
        .rev()
        .find(|failure| failure.kind == Kind::BlockOom)?;
    Some(OutOfMemory {
        time_ns: failure.time_ns,
        requested_bytes: failure.requested_bytes,
        live_bytes: failure.live_bytes,
        reserved_bytes: failure.reserved_bytes,
        site: site(process, failure.stack),
    })
}
