//! Host memory that the device can reach: allocated by the driver, or the
//! program's own, registered.

use crate::abi::{Out, Outcome, Status};
use crate::backing;
use crate::entry::entry;
use crate::machine::Machine;
use crate::memory::{Allocation, Kind};

/// `PORTABLE`, `DEVICEMAP` and `WRITECOMBINED`.
const ALLOCATION_FLAGS: u32 = 7;
/// `PORTABLE`, `DEVICEMAP`, `IOMEMORY` and `READ_ONLY`.
const REGISTRATION_FLAGS: u32 = 15;

impl Machine {
    /// Pinned memory; no bytes are at address zero, as with driver 580.
    fn allocate_pinned(&mut self, out: &Out<u64>, size_bytes: usize, flags: u32) -> Outcome {
        out.required()?;
        let current = self.contexts.current()?;
        if flags & !ALLOCATION_FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if size_bytes == 0 {
            return out.set(0);
        }
        let size_bytes = size_bytes as u64;
        let address = backing::map(size_bytes).ok_or(Status::OUT_OF_MEMORY)?;
        self.memory.insert(
            address,
            Allocation {
                kind: Kind::Pinned { flags },
                size_bytes,
                charged_bytes: 0,
                device: None,
                context: Some(current.handle),
            },
        );
        out.set(address)
    }
}

entry! {
    /// Allocates pinned host memory.
    fn cuMemAllocHost_v2(machine; out: Out<u64>, size_bytes: usize) {
        machine.allocate_pinned(&out, size_bytes, 0)
    }

    /// Allocates pinned host memory with flags.
    fn cuMemHostAlloc(machine; out: Out<u64>, size_bytes: usize, flags: u32) {
        machine.allocate_pinned(&out, size_bytes, flags)
    }

    /// Frees pinned host memory.
    fn cuMemFreeHost(machine; address: u64) {
        machine.contexts.current()?;
        if address == 0 {
            return Ok(());
        }
        match machine.memory.at(address).map(|allocation| allocation.kind) {
            Some(Kind::Pinned { .. }) => {
                machine.drop_allocation(address);
                Ok(())
            }
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Pins memory that the program owns.
    fn cuMemHostRegister_v2(machine; address: u64, size_bytes: usize, flags: u32) {
        let current = machine.contexts.current()?;
        let size_bytes = size_bytes as u64;
        if address == 0
            || size_bytes == 0
            || address.checked_add(size_bytes).is_none()
            || flags & !REGISTRATION_FLAGS != 0
        {
            return Err(Status::INVALID_VALUE);
        }
        if machine.memory.overlaps(address, size_bytes) {
            return Err(Status::ALREADY_REGISTERED);
        }
        machine.memory.insert(
            address,
            Allocation {
                kind: Kind::Registered { flags },
                size_bytes,
                charged_bytes: 0,
                device: None,
                context: Some(current.handle),
            },
        );
        Ok(())
    }

    /// Unpins it; the address is that of the registration.
    fn cuMemHostUnregister(machine; address: u64) {
        machine.contexts.current()?;
        match machine.memory.at(address).map(|allocation| allocation.kind) {
            Some(Kind::Registered { .. }) => {
                machine.drop_allocation(address);
                Ok(())
            }
            Some(_) => Err(Status::INVALID_VALUE),
            // Within a registration, but not its start.
            None if machine.memory.containing(address).is_some() => Err(Status::INVALID_VALUE),
            None => Err(Status::NOT_REGISTERED),
        }
    }

    /// The device's address of pinned memory: the same, in one address space.
    fn cuMemHostGetDevicePointer_v2(machine; out: Out<u64>, address: u64, flags: u32) {
        out.required()?;
        machine.contexts.current()?;
        let pinned = machine.memory.containing(address).is_some_and(|(_, allocation)| {
            matches!(allocation.kind, Kind::Pinned { .. } | Kind::Registered { .. })
        });
        if !pinned || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        out.set(address)
    }

    /// The flags that pinned memory was allocated or registered with.
    fn cuMemHostGetFlags(machine; out: Out<u32>, address: u64) {
        out.required()?;
        machine.contexts.current()?;
        match machine.memory.at(address).map(|allocation| allocation.kind) {
            Some(Kind::Pinned { flags } | Kind::Registered { flags }) => out.set(flags),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}
