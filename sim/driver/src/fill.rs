//! Fills (`cuMemset`), with elements of one, two and four bytes.

use crate::abi::{Outcome, Status};
use crate::backing;
use crate::copy::Reach;
use crate::entry::entry;
use crate::machine::Machine;
use crate::memory::Kind;

impl Machine {
    /// Fills `count` elements of device memory; the address is a multiple of
    /// the element's size.
    fn fill<T: Copy + PartialEq + Default>(&self, address: u64, value: T, count: usize) -> Outcome {
        if count == 0 {
            return Ok(());
        }
        let size_bytes = count
            .checked_mul(size_of::<T>())
            .ok_or(Status::INVALID_VALUE)? as u64;
        if !address.is_multiple_of(size_of::<T>() as u64)
            || self.reach(address, size_bytes, true) != Reach::Known
        {
            return Err(Status::INVALID_VALUE);
        }
        let private = self
            .memory
            .containing(address)
            .is_some_and(|(_, allocation)| !matches!(allocation.kind, Kind::Registered { .. }));
        // SAFETY: the range was just found to be the driver's and writable, and
        // the lock keeps it; all but registered memory and mappings of physical
        // memory, which are no allocation, comes from `backing::map`.
        unsafe {
            if value == T::default() {
                backing::zero(address, size_bytes, private);
            } else {
                backing::fill(address, value, count);
            }
        }
        Ok(())
    }
}

entry! {
    /// Bytes.
    fn cuMemsetD8_v2 | cuMemsetD8_v2_ptds(machine, _; to: u64, value: u8, count: usize) {
        machine.contexts.current()?;
        machine.fill(to, value, count)
    }

    /// Bytes, on a stream.
    fn cuMemsetD8Async | cuMemsetD8Async_ptsz(
        machine, default;
        to: u64, value: u8, count: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.fill(to, value, count)
    }

    /// Elements of two bytes.
    fn cuMemsetD16_v2 | cuMemsetD16_v2_ptds(machine, _; to: u64, value: u16, count: usize) {
        machine.contexts.current()?;
        machine.fill(to, value, count)
    }

    /// Elements of two bytes, on a stream.
    fn cuMemsetD16Async | cuMemsetD16Async_ptsz(
        machine, default;
        to: u64, value: u16, count: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.fill(to, value, count)
    }

    /// Elements of four bytes.
    fn cuMemsetD32_v2 | cuMemsetD32_v2_ptds(machine, _; to: u64, value: u32, count: usize) {
        machine.contexts.current()?;
        machine.fill(to, value, count)
    }

    /// Elements of four bytes, on a stream.
    fn cuMemsetD32Async | cuMemsetD32Async_ptsz(
        machine, default;
        to: u64, value: u32, count: usize, stream: u64
    ) {
        machine.stream(stream, default)?;
        machine.fill(to, value, count)
    }
}
