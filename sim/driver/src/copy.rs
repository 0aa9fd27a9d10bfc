//! Copies: done at once, in the order of the calls, which every stream allows.

use crate::abi::{Outcome, Status};
use crate::backing;
use crate::entry::entry;
use crate::machine::Machine;

/// What the driver knows of a range that a copy or a fill names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All of it may be used so.
    Known,
    /// It begins in memory that the driver knows, and is not all usable.
    Broken,
    /// The driver does not know it: pageable host memory.
    Unknown,
}

impl Machine {
    /// What is known of `[address, address + size_bytes)`.
    pub(crate) fn reach(&self, address: u64, size_bytes: u64, write: bool) -> Reach {
        if let Some((start, allocation)) = self.memory.containing(address) {
            let left = allocation.size_bytes - (address - start);
            return if size_bytes <= left {
                Reach::Known
            } else {
                Reach::Broken
            };
        }
        if self.vmm.reserved(address) {
            let usable = self.vmm.accessible(address, size_bytes, write);
            return if usable { Reach::Known } else { Reach::Broken };
        }
        Reach::Unknown
    }

    /// Copies after checking each side that must be the device's.
    fn copy(
        &self,
        (destination, destination_is_device): (u64, bool),
        (source, source_is_device): (u64, bool),
        bytes: usize,
    ) -> Outcome {
        if bytes == 0 {
            return Ok(());
        }
        for (address, is_device, write) in [
            (destination, destination_is_device, true),
            (source, source_is_device, false),
        ] {
            let reach = self.reach(address, bytes as u64, write);
            if address == 0 || reach == Reach::Broken || (is_device && reach == Reach::Unknown) {
                return Err(Status::INVALID_VALUE);
            }
        }
        // SAFETY: what the driver knows has just been checked, and the lock
        // keeps it; the caller vouches for memory of his own.
        unsafe { backing::copy(destination, source, bytes) };
        Ok(())
    }
}

entry! {
    /// Between any two addresses, of which one at least is known to the driver.
    fn cuMemcpy | cuMemcpy_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.contexts.current()?;
        let unknown = |address| machine.reach(address, bytes as u64, false) == Reach::Unknown;
        if unknown(to) && unknown(from) {
            return Err(Status::INVALID_VALUE);
        }
        machine.copy((to, false), (from, false), bytes)
    }

    /// The same on a stream.
    fn cuMemcpyAsync | cuMemcpyAsync_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.copy((to, false), (from, false), bytes)
    }

    /// Host to device.
    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.contexts.current()?;
        machine.copy((to, true), (from, false), bytes)
    }

    /// Host to device, on a stream.
    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.copy((to, true), (from, false), bytes)
    }

    /// Device to host.
    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.contexts.current()?;
        machine.copy((to, false), (from, true), bytes)
    }

    /// Device to host, on a stream.
    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.copy((to, false), (from, true), bytes)
    }

    /// Device to device.
    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.contexts.current()?;
        machine.copy((to, true), (from, true), bytes)
    }

    /// Device to device, on a stream.
    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.copy((to, true), (from, true), bytes)
    }

    /// From a context's device to another's.
    fn cuMemcpyPeer | cuMemcpyPeer_ptds(
        machine, _;
        to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize
    ) {
        machine.contexts.current()?;
        machine.copy((to, true), (from, true), bytes)
    }

    /// From a context's device to another's, on a stream.
    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz(
        machine, default;
        to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.copy((to, true), (from, true), bytes)
    }
}
