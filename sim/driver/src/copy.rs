//! Copies of ranges and of planes: done at once, in the order of the calls,
//! which every stream allows.

use crate::abi::{In, Outcome, Plain, Status};
use crate::backing::{self, Pages};
use crate::entry::entry;
use crate::graph::Work;
use crate::machine::Machine;
use crate::memory::Kind;
use crate::sparse::{self, Store};
use crate::stream::DefaultStream;

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

/// One side of a copy.
#[derive(Clone, Copy, Debug)]
struct Side {
    address: u64,
    /// Distance of rows.
    pitch_bytes: u64,
    /// It must be memory that the driver knows.
    is_device: bool,
}

/// Rows of bytes from one place to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copy2D {
    to: Side,
    from: Side,
    row_bytes: u64,
    rows: u64,
    /// A number is written that is not read: see [`Machine::bring_number`].
    pub(crate) brings_number: bool,
}

impl Copy2D {
    /// One row.
    fn range(
        (to, to_is_device): (u64, bool),
        (from, from_is_device): (u64, bool),
        bytes: usize,
    ) -> Self {
        let side = |address, is_device| Side {
            address,
            pitch_bytes: 0,
            is_device,
        };
        Self {
            to: side(to, to_is_device),
            from: side(from, from_is_device),
            row_bytes: bytes as u64,
            rows: 1,
            brings_number: false,
        }
    }
}

/// `CUDA_MEMCPY2D`; arrays are not simulated.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Parameters {
    from: Plane,
    to: Plane,
    row_bytes: usize,
    rows: usize,
}

/// A side in it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Plane {
    x_bytes: usize,
    y: usize,
    /// 1: host, 2: device, 3: array, 4: either, by the device's address.
    kind: u32,
    padding: u32,
    host: u64,
    device: u64,
    array: u64,
    pitch_bytes: usize,
}

// SAFETY: integers alone, the padding written out.
unsafe impl Plain for Parameters {}

const _: () = assert!(
    size_of::<Parameters>() == size_of::<cudarc::driver::sys::CUDA_MEMCPY2D_v2>(),
    "CUDA_MEMCPY2D has another size"
);

impl Plane {
    fn side(&self, row_bytes: usize, rows: usize) -> Outcome<Side> {
        let (base, is_device) = match self.kind {
            1 => (self.host, false),
            2 => (self.device, true),
            4 => (self.device, false),
            _ => return Err(Status::NOT_SUPPORTED),
        };
        let end_of_row = self.x_bytes.checked_add(row_bytes);
        if rows > 1 && end_of_row.is_none_or(|end| end > self.pitch_bytes) {
            return Err(Status::INVALID_VALUE);
        }
        let offset = self.y.checked_mul(self.pitch_bytes);
        let offset = offset.and_then(|offset| offset.checked_add(self.x_bytes));
        let address = base.checked_add(offset.ok_or(Status::INVALID_VALUE)? as u64);
        Ok(Side {
            address: address.ok_or(Status::INVALID_VALUE)?,
            pitch_bytes: self.pitch_bytes as u64,
            is_device,
        })
    }
}

impl Parameters {
    fn copy(&self) -> Outcome<Copy2D> {
        Ok(Copy2D {
            to: self.to.side(self.row_bytes, self.rows)?,
            from: self.from.side(self.row_bytes, self.rows)?,
            row_bytes: self.row_bytes as u64,
            rows: self.rows as u64,
            brings_number: false,
        })
    }
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

    /// What kind of pages lie at an address.
    pub(crate) fn pages(&self, address: u64) -> Pages {
        match self.memory.containing(address) {
            Some((_, allocation)) => match allocation.kind {
                Kind::Device { .. } | Kind::Imported => Pages::Shared,
                Kind::Registered { .. } => Pages::Foreign,
                _ => Pages::Private,
            },
            None if self.vmm.mapping(address).is_some() => Pages::Shared,
            None => Pages::Foreign,
        }
    }

    /// Where the bytes from an address on are kept, and for how many that holds.
    fn store(&self, address: u64) -> (Store, u64) {
        if let Some((start, allocation)) = self.memory.containing(address) {
            let into = address - start;
            let store = match (allocation.kind, self.memory.descriptor()) {
                (Kind::Device { offset }, Some(descriptor)) => Store::File {
                    descriptor,
                    offset: offset + into,
                },
                // Another process's file has no descriptor here.
                (Kind::Device { .. } | Kind::Imported | Kind::Registered { .. }, _) => {
                    Store::Unknown
                }
                _ => Store::Private,
            };
            return (store, allocation.size_bytes - into);
        }
        let mapped = self.vmm.store(address);
        mapped.map_or((Store::Unknown, u64::MAX), |(descriptor, offset, left)| {
            (Store::File { descriptor, offset }, left)
        })
    }

    /// Copies bytes, holes as holes.
    ///
    /// # Safety
    /// The source may be read and the destination written.
    unsafe fn copy_row(&self, to: u64, from: u64, bytes: u64) {
        let pages = self.pages(to);
        let overlaps = to.abs_diff(from) < bytes;
        let mut done = 0;
        while done < bytes {
            let (store, left) = if overlaps {
                (Store::Unknown, u64::MAX)
            } else {
                self.store(from + done)
            };
            let part = left.min(bytes - done);
            // SAFETY: a part of the caller's ranges.
            unsafe { sparse::copy((to + done, pages), (from + done, store), part) };
            done += part;
        }
    }

    /// Whether a side may be used so: all rows lie within one known range, or
    /// within what the caller vouches for.
    fn may_copy(&self, side: &Side, copy: &Copy2D, write: bool) -> Outcome {
        let span = (copy.rows - 1)
            .checked_mul(side.pitch_bytes)
            .and_then(|bytes| bytes.checked_add(copy.row_bytes))
            .ok_or(Status::INVALID_VALUE)?;
        let reach = self.reach(side.address, span, write);
        let unknown = side.is_device && reach == Reach::Unknown;
        if side.address == 0 || reach == Reach::Broken || unknown {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// Copies after checking each side.
    pub(crate) fn copy(&self, copy: &Copy2D) -> Outcome {
        if !self.has_something(copy)? {
            return Ok(());
        }
        for row in 0..copy.rows {
            let to = copy.to.address + row * copy.to.pitch_bytes;
            let from = copy.from.address + row * copy.from.pitch_bytes;
            // SAFETY: what the driver knows has just been checked, and the lock
            // keeps it; the caller vouches for memory of his own.
            unsafe { self.copy_row(to, from, copy.row_bytes) };
        }
        Ok(())
    }

    /// Writes a number where a copy goes, of one row, in place of what nobody has
    /// computed: zero, or one for the byte of a kernel that says whether all of
    /// something is true. Most programs ask so only to stop where it is not.
    pub(crate) fn bring_number(&self, copy: &Copy2D, follows_conjunction: bool) -> Outcome {
        if !self.has_something(copy)? {
            return Ok(());
        }
        let is_truth = follows_conjunction && copy.row_bytes == 1;
        let value = u8::from(is_truth);
        // SAFETY: as in `copy`.
        unsafe { backing::fill(copy.to.address, value, copy.row_bytes as usize) };
        Ok(())
    }

    /// Whether a copy takes a truth of a kernel's along: it brings a number to the
    /// program, or a single byte from the device to somewhere.
    pub(crate) fn carries_truth(&self, copy: &Copy2D) -> bool {
        let from = copy.from.address;
        let allocation = self.memory.containing(from);
        let from_device = allocation.map_or(self.vmm.mapping(from).is_some(), |(_, allocation)| {
            allocation.device.is_some()
        });
        copy.brings_number || (copy.row_bytes == 1 && copy.rows == 1 && from_device)
    }

    /// Whether there are bytes to be copied; both sides may be used so.
    fn has_something(&self, copy: &Copy2D) -> Outcome<bool> {
        if copy.row_bytes == 0 || copy.rows == 0 {
            return Ok(false);
        }
        self.may_copy(&copy.to, copy, true)?;
        self.may_copy(&copy.from, copy, false)?;
        Ok(true)
    }

    fn copy_now(&mut self, to: (u64, bool), from: (u64, bool), bytes: usize) -> Outcome {
        let context = self.contexts.current()?.handle;
        self.streams.end_legacy(context);
        self.copy(&Copy2D::range(to, from, bytes))
    }

    fn copy_on(
        &mut self,
        (stream, default): (u64, DefaultStream),
        to: (u64, bool),
        from: (u64, bool),
        bytes: usize,
    ) -> Outcome {
        let stream = self.stream(stream, default)?;
        self.submit(&stream, Work::Copy(Copy2D::range(to, from, bytes)))
    }
}

entry! {
    /// Between any two addresses, of which one at least is known to the driver.
    fn cuMemcpy | cuMemcpy_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        let unknown = |address| machine.reach(address, bytes as u64, false) == Reach::Unknown;
        if unknown(to) && unknown(from) {
            machine.contexts.current()?;
            return Err(Status::INVALID_VALUE);
        }
        machine.copy_now((to, false), (from, false), bytes)
    }

    /// The same on a stream.
    fn cuMemcpyAsync | cuMemcpyAsync_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.copy_on((stream, default), (to, false), (from, false), bytes)
    }

    /// Host to device.
    fn cuMemcpyHtoD_v2 | cuMemcpyHtoD_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.copy_now((to, true), (from, false), bytes)
    }

    /// Host to device, on a stream.
    fn cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.copy_on((stream, default), (to, true), (from, false), bytes)
    }

    /// Device to host.
    fn cuMemcpyDtoH_v2 | cuMemcpyDtoH_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.copy_now((to, false), (from, true), bytes)?;
        machine.remember_copy(bytes, false, None);
        Ok(())
    }

    /// Device to host, on a stream. Small ones may bring numbers of our own, so
    /// that a program does not take what lay there for a size.
    fn cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        let stream = machine.stream(stream, default)?;
        let brings_number = bytes as u64 <= crate::config::get().small_d2h_bytes;
        let copy = Copy2D {
            brings_number,
            ..Copy2D::range((to, false), (from, true), bytes)
        };
        machine.submit(&stream, Work::Copy(copy))?;
        let done = brings_number && stream.capture.is_none();
        let byte = (done && bytes == 1).then_some(to);
        machine.remember_copy(bytes, brings_number && bytes > 0, byte);
        Ok(())
    }

    /// Device to device.
    fn cuMemcpyDtoD_v2 | cuMemcpyDtoD_v2_ptds(machine, _; to: u64, from: u64, bytes: usize) {
        machine.copy_now((to, true), (from, true), bytes)
    }

    /// Device to device, on a stream.
    fn cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync_v2_ptsz(
        machine, default;
        to: u64, from: u64, bytes: usize, stream: u64
    ) {
        machine.copy_on((stream, default), (to, true), (from, true), bytes)
    }

    /// From a context's device to another's.
    fn cuMemcpyPeer | cuMemcpyPeer_ptds(
        machine, _;
        to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize
    ) {
        machine.copy_now((to, true), (from, true), bytes)
    }

    /// From a context's device to another's, on a stream.
    fn cuMemcpyPeerAsync | cuMemcpyPeerAsync_ptsz(
        machine, default;
        to: u64, _to_context: u64, from: u64, _from_context: u64, bytes: usize, stream: u64
    ) {
        machine.copy_on((stream, default), (to, true), (from, true), bytes)
    }

    /// Rows between two planes.
    fn cuMemcpy2D_v2 | cuMemcpy2D_v2_ptds(machine, _; parameters: In<Parameters>) {
        machine.contexts.current()?;
        machine.copy(&parameters.read()?.copy()?)
    }

    /// The same for any pitch, which all are here.
    fn cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned_v2_ptds(
        machine, _;
        parameters: In<Parameters>
    ) {
        machine.contexts.current()?;
        machine.copy(&parameters.read()?.copy()?)
    }

    /// Rows between two planes, on a stream.
    fn cuMemcpy2DAsync_v2 | cuMemcpy2DAsync_v2_ptsz(
        machine, default;
        parameters: In<Parameters>, stream: u64
    ) {
        let stream = machine.stream(stream, default)?;
        let copy = parameters.read()?.copy()?;
        machine.submit(&stream, Work::Copy(copy))
    }
}
