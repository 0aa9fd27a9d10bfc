//! Memory by address: device, managed, pool blocks, pinned and registered host
//! memory.

use std::collections::BTreeMap;

use crate::abi::{Out, Outcome, Status};
use crate::backing::{self, DeviceFile};
use crate::entry::entry;
use crate::ledger::{DeviceId, granules};
use crate::machine::Machine;
use crate::stream::StreamId;

/// Rows of a pitched allocation begin at multiples of this.
const PITCH_BYTES: u64 = 512;

/// What lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `cuMemAlloc`: on the device, in granules of its own, at an offset of the
    /// process's file.
    Device { offset: u64 },
    /// `cuMemAllocManaged`: takes no device memory until touched, which here
    /// never happens.
    Managed,
    /// `cuMemAllocAsync`: within what the pool has reserved.
    PoolBlock { pool: u64, stream: StreamId },
    /// `cuMemHostAlloc`, with its flags.
    Pinned { flags: u32 },
    /// `cuMemHostRegister` of the program's own memory, with its flags.
    Registered { flags: u32 },
    /// `cuIpcOpenMemHandle`: another process's.
    Imported,
    /// A variable of a module.
    Variable,
}

/// A live allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub(crate) kind: Kind,
    /// What was asked for.
    pub(crate) size_bytes: u64,
    /// What it takes on the device by itself.
    pub(crate) charged_bytes: u64,
    /// `None` for host memory.
    pub(crate) device: Option<DeviceId>,
    /// The owner, at whose end it goes; pool blocks have none.
    pub(crate) context: Option<u64>,
}

/// All live allocations by address.
#[derive(Default)]
pub(crate) struct Memory {
    live: BTreeMap<u64, Allocation>,
    file: DeviceFile,
}

impl Memory {
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Allocation)> {
        self.live
            .iter()
            .map(|(address, allocation)| (*address, allocation))
    }

    /// The allocation that begins at `address`.
    pub(crate) fn at(&self, address: u64) -> Option<&Allocation> {
        self.live.get(&address)
    }

    /// The allocation that `address` lies in, with its start.
    pub(crate) fn containing(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (start, allocation) = self.live.range(..=address).next_back()?;
        (address - start < allocation.size_bytes).then_some((*start, allocation))
    }

    /// Whether some allocation lies in `[address, address + size_bytes)`.
    pub(crate) fn overlaps(&self, address: u64, size_bytes: u64) -> bool {
        let end = address.saturating_add(size_bytes);
        self.live
            .range(..end)
            .next_back()
            .is_some_and(|(start, allocation)| start + allocation.size_bytes > address)
    }

    /// The descriptor of the file behind device memory, once there is some.
    pub(crate) fn descriptor(&self) -> Option<i32> {
        self.file.descriptor()
    }

    pub(crate) fn insert(&mut self, address: u64, allocation: Allocation) {
        let before = self.live.insert(address, allocation);
        debug_assert!(before.is_none(), "two allocations at one address");
    }

    pub(crate) fn remove(&mut self, address: u64) -> Option<Allocation> {
        self.live.remove(&address)
    }
}

impl Machine {
    /// Device memory of the current context; answers its address.
    fn allocate_device(&mut self, out: &Out<u64>, size_bytes: u64) -> Outcome {
        out.required()?;
        let current = self.contexts.current()?;
        if size_bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let charged_bytes = granules(size_bytes).ok_or(Status::OUT_OF_MEMORY)?;
        self.ledger.charge(current.device, charged_bytes)?;
        let Some((address, offset)) = self.memory.file.create_mapped(size_bytes) else {
            self.ledger.discharge(current.device, charged_bytes);
            return Err(Status::OUT_OF_MEMORY);
        };
        self.memory.insert(
            address,
            Allocation {
                kind: Kind::Device { offset },
                size_bytes,
                charged_bytes,
                device: Some(current.device),
                context: Some(current.handle),
            },
        );
        out.set(address)
    }

    /// Frees what `cuMemFree` and `cuMemFreeAsync` may free: both take device
    /// memory and pool blocks.
    pub(crate) fn free_device(&mut self, address: u64) -> Outcome {
        match self.memory.at(address).map(|allocation| allocation.kind) {
            Some(Kind::Device { .. } | Kind::Managed | Kind::PoolBlock { .. }) => {
                self.drop_allocation(address);
                Ok(())
            }
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Takes an allocation away and settles its account.
    pub(crate) fn drop_allocation(&mut self, address: u64) {
        let Some(allocation) = self.memory.remove(address) else {
            return;
        };
        if let Some(device) = allocation.device {
            self.ledger.discharge(device, allocation.charged_bytes);
        }
        match allocation.kind {
            Kind::PoolBlock { pool, .. } => self.return_block(pool, allocation.size_bytes),
            // The program's own memory stays where it is.
            Kind::Registered { .. } => return,
            Kind::Device { offset } => self.memory.file.discard(offset, allocation.size_bytes),
            Kind::Imported => self.forget_import(address),
            Kind::Managed | Kind::Pinned { .. } | Kind::Variable => {}
        }
        // SAFETY: all other kinds come from `backing` with this size, and the
        // program has given the memory up.
        unsafe { backing::unmap(address, allocation.size_bytes) };
    }

    /// Frees what a context owns, at its end.
    pub(crate) fn free_memory_of(&mut self, context: u64) {
        let owned: Vec<u64> = self
            .memory
            .all()
            .filter(|(_, allocation)| allocation.context == Some(context))
            .map(|(address, _)| address)
            .collect();
        for address in owned {
            self.drop_allocation(address);
        }
    }
}

entry! {
    /// Allocates device memory.
    fn cuMemAlloc_v2(machine; out: Out<u64>, size_bytes: usize) {
        machine.allocate_device(&out, size_bytes as u64)
    }

    /// Allocates rows whose distance is answered in `pitch`.
    fn cuMemAllocPitch_v2(
        machine;
        out: Out<u64>,
        pitch: Out<usize>,
        width_bytes: usize,
        height: usize,
        element_bytes: u32,
    ) {
        pitch.required()?;
        if !matches!(element_bytes, 4 | 8 | 16) {
            return Err(Status::INVALID_VALUE);
        }
        let row_bytes = (width_bytes as u64)
            .checked_next_multiple_of(PITCH_BYTES)
            .ok_or(Status::OUT_OF_MEMORY)?;
        let size_bytes = row_bytes.checked_mul(height as u64).ok_or(Status::OUT_OF_MEMORY)?;
        machine.allocate_device(&out, size_bytes)?;
        pitch.set(row_bytes as usize)
    }

    /// Allocates managed memory; `flags` says who may use it (1: all, 2: host).
    fn cuMemAllocManaged(machine; out: Out<u64>, size_bytes: usize, flags: u32) {
        out.required()?;
        let current = machine.contexts.current()?;
        if size_bytes == 0 || !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        let size_bytes = size_bytes as u64;
        let address = backing::map(size_bytes).ok_or(Status::OUT_OF_MEMORY)?;
        machine.memory.insert(
            address,
            Allocation {
                kind: Kind::Managed,
                size_bytes,
                charged_bytes: 0,
                device: Some(current.device),
                context: Some(current.handle),
            },
        );
        out.set(address)
    }

    /// Frees device memory, managed memory or a pool block (for which it waits,
    /// so that pools shrink). NULL is nothing.
    fn cuMemFree_v2(machine; address: u64) {
        machine.contexts.current()?;
        if address == 0 {
            return Ok(());
        }
        let pooled = machine.memory.at(address).filter(|allocation| {
            matches!(allocation.kind, Kind::PoolBlock { .. })
        });
        let device = pooled.and_then(|allocation| allocation.device);
        machine.free_device(address)?;
        if let Some(device) = device {
            machine.trim_pools_at_synchronisation(device);
        }
        Ok(())
    }

    /// Free and total memory of the current device; both answers are needed.
    /// Free is what no process has taken.
    fn cuMemGetInfo_v2(machine; free: Out<usize>, total: Out<usize>) {
        free.required()?;
        total.required()?;
        let current = machine.contexts.current()?;
        let account = machine.ledger.account(current.device);
        let taken_bytes = machine.ledger.taken_bytes(current.device);
        free.set((account.limit_bytes - taken_bytes) as usize)?;
        total.set(account.limit_bytes as usize)
    }
}
