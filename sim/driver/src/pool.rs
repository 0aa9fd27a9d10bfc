//! Memory pools and stream-ordered allocation.
//!
//! A pool has two numbers: what it has reserved on its device, in chunks, and
//! what its live blocks were asked for. A freed block goes back to the pool;
//! what the pool holds beyond its threshold is released when a stream, event or
//! context is waited for, and by `cuMemFree`, which waits, too. So it was seen
//! of driver 580 on an H200.

use std::collections::BTreeMap;
use std::ffi::c_void;

use crate::abi::{
    ALLOCATION_PINNED, AccessDesc, In, LOCATION_DEVICE, Location, Out, Outcome, PoolProps, Status,
};
use crate::backing;
use crate::entry::entry;
use crate::ledger::DeviceId;
use crate::machine::Machine;
use crate::memory::{Allocation, Kind};

/// What a pool reserves at a time.
const CHUNK_BYTES: u64 = 32 << 20;

/// A pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) device: DeviceId,
    pub(crate) default: bool,
    /// Destroyed by the program, and kept by its live blocks.
    pub(crate) closing: bool,
    pub(crate) reserved_bytes: u64,
    pub(crate) used_bytes: u64,
    reserved_high_bytes: u64,
    used_high_bytes: u64,
    threshold_bytes: u64,
    max_bytes: u64,
    reuse: [i32; 3],
}

/// All pools by handle, and the one that each device allocates from.
#[derive(Default)]
pub(crate) struct Pools {
    all: BTreeMap<u64, Pool>,
    defaults: Vec<u64>,
    chosen: Vec<u64>,
}

impl Pool {
    fn new(device: DeviceId, default: bool, max_bytes: u64) -> Self {
        Self {
            device,
            default,
            closing: false,
            reserved_bytes: 0,
            used_bytes: 0,
            reserved_high_bytes: 0,
            used_high_bytes: 0,
            threshold_bytes: 0,
            max_bytes,
            reuse: [1; 3],
        }
    }
}

impl Pools {
    /// Adds the default pool of the next device.
    pub(crate) fn add_default(&mut self, device: DeviceId, handle: u64) {
        self.all.insert(handle, Pool::new(device, true, u64::MAX));
        self.defaults.push(handle);
        self.chosen.push(handle);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Pool)> {
        self.all.iter().map(|(handle, pool)| (*handle, pool))
    }

    /// The pool that a device's `cuMemAllocAsync` takes from.
    fn of_device(&self, device: DeviceId) -> u64 {
        self.chosen[device.index()]
    }

    fn get(&mut self, handle: u64) -> Outcome<&mut Pool> {
        self.all
            .get_mut(&handle)
            .filter(|pool| !pool.closing)
            .ok_or(Status::INVALID_VALUE)
    }
}

/// `size_bytes` in whole chunks; `None` beyond any memory.
fn chunks(size_bytes: u64) -> Option<u64> {
    size_bytes.checked_next_multiple_of(CHUNK_BYTES)
}

impl Machine {
    fn allocate_block(
        &mut self,
        out: &Out<u64>,
        size_bytes: u64,
        handle: u64,
        stream: crate::stream::StreamId,
    ) -> Outcome {
        if size_bytes == 0 {
            return out.set(0);
        }
        let pool = self.pools.get(handle)?;
        let device = pool.device;
        let used = pool
            .used_bytes
            .checked_add(size_bytes)
            .ok_or(Status::OUT_OF_MEMORY)?;
        let reserved = chunks(used)
            .ok_or(Status::OUT_OF_MEMORY)?
            .max(pool.reserved_bytes);
        if reserved > pool.max_bytes {
            return Err(Status::OUT_OF_MEMORY);
        }
        let growth = reserved - pool.reserved_bytes;
        self.ledger.charge(device, growth)?;
        let Some(address) = backing::map(size_bytes) else {
            self.ledger.discharge(device, growth);
            return Err(Status::OUT_OF_MEMORY);
        };
        let pool = self.pools.get(handle)?;
        pool.used_bytes = used;
        pool.used_high_bytes = pool.used_high_bytes.max(used);
        pool.reserved_bytes = reserved;
        pool.reserved_high_bytes = pool.reserved_high_bytes.max(reserved);
        self.memory.insert(
            address,
            Allocation {
                kind: Kind::PoolBlock {
                    pool: handle,
                    stream,
                },
                size_bytes,
                charged_bytes: 0,
                device: Some(device),
                context: None,
            },
        );
        out.set(address)
    }

    /// Takes a freed block back. The last block of a destroyed pool ends it.
    pub(crate) fn return_block(&mut self, handle: u64, size_bytes: u64) {
        let Some(pool) = self.pools.all.get_mut(&handle) else {
            return;
        };
        pool.used_bytes -= size_bytes;
        if pool.closing {
            self.shrink(handle, 0);
            self.end_pool_without_blocks(handle);
        }
    }

    fn end_pool_without_blocks(&mut self, handle: u64) {
        let ended = |pool: &Pool| pool.closing && pool.used_bytes == 0;
        if self.pools.all.get(&handle).is_some_and(ended) {
            self.pools.all.remove(&handle);
        }
    }

    /// Releases what a pool holds beyond `keep_bytes` and its live blocks.
    fn shrink(&mut self, handle: u64, keep_bytes: u64) {
        let Some(pool) = self.pools.all.get_mut(&handle) else {
            return;
        };
        let keep = chunks(pool.used_bytes.max(keep_bytes)).unwrap_or(u64::MAX);
        let released = pool.reserved_bytes.saturating_sub(keep);
        pool.reserved_bytes -= released;
        let device = pool.device;
        self.ledger.discharge(device, released);
    }

    /// What a wait for a stream, an event or a context does to the pools.
    pub(crate) fn trim_pools_at_synchronisation(&mut self, device: DeviceId) {
        let over: Vec<(u64, u64)> = self
            .pools
            .all()
            .filter(|(_, pool)| pool.device == device && pool.reserved_bytes > pool.threshold_bytes)
            .map(|(handle, pool)| (handle, pool.threshold_bytes))
            .collect();
        for (handle, threshold) in over {
            self.shrink(handle, threshold);
        }
    }
}

entry! {
    /// Allocates from the current device's pool, in the order of a stream. No
    /// bytes are at address zero.
    fn cuMemAllocAsync | cuMemAllocAsync_ptsz(
        machine, default;
        out: Out<u64>, size_bytes: usize, stream: u64
    ) {
        out.required()?;
        let stream = machine.stream(stream, default)?;
        let pool = machine.pools.of_device(stream.device);
        machine.allocate_block(&out, size_bytes as u64, pool, stream.id)
    }

    /// Allocates from a pool of the program's choice.
    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz(
        machine, default;
        out: Out<u64>, size_bytes: usize, pool: u64, stream: u64
    ) {
        out.required()?;
        let stream = machine.stream(stream, default)?;
        machine.allocate_block(&out, size_bytes as u64, pool, stream.id)
    }

    /// Frees a pool block or device memory, in the order of a stream.
    fn cuMemFreeAsync | cuMemFreeAsync_ptsz(machine, default; address: u64, stream: u64) {
        machine.stream(stream, default)?;
        if address == 0 {
            return Ok(());
        }
        machine.free_device(address)
    }

    /// Creates a pool on a device.
    fn cuMemPoolCreate(machine; out: Out<u64>, properties: In<PoolProps>) {
        out.required()?;
        let properties = properties.read()?;
        if properties.kind != ALLOCATION_PINNED {
            return Err(Status::INVALID_VALUE);
        }
        if properties.location.kind != LOCATION_DEVICE {
            return Err(Status::NOT_SUPPORTED);
        }
        let device = machine.device(properties.location.id)?;
        let max_bytes = match properties.max_bytes {
            0 => u64::MAX,
            bytes => chunks(bytes as u64).unwrap_or(u64::MAX),
        };
        let handle = machine.new_handle();
        machine.pools.all.insert(handle, Pool::new(device, false, max_bytes));
        out.set(handle)
    }

    /// Destroys a pool, which its live blocks keep; a default pool stays.
    fn cuMemPoolDestroy(machine; handle: u64) {
        let pool = machine.pools.get(handle)?;
        if pool.default {
            return Err(Status::INVALID_VALUE);
        }
        pool.closing = true;
        let index = pool.device.index();
        if machine.pools.chosen[index] == handle {
            machine.pools.chosen[index] = machine.pools.defaults[index];
        }
        machine.shrink(handle, 0);
        machine.end_pool_without_blocks(handle);
        Ok(())
    }

    /// The pool that a device began with.
    fn cuDeviceGetDefaultMemPool(machine; out: Out<u64>, device: i32) {
        out.required()?;
        let device = machine.device(device)?;
        out.set(machine.pools.defaults[device.index()])
    }

    /// The pool that a device allocates from.
    fn cuDeviceGetMemPool(machine; out: Out<u64>, device: i32) {
        out.required()?;
        let device = machine.device(device)?;
        out.set(machine.pools.of_device(device))
    }

    /// Chooses the pool that a device allocates from: one of its own.
    fn cuDeviceSetMemPool(machine; device: i32, handle: u64) {
        let device = machine.device(device)?;
        if machine.pools.get(handle)?.device != device {
            return Err(Status::INVALID_VALUE);
        }
        machine.pools.chosen[device.index()] = handle;
        Ok(())
    }

    /// Releases what the pool holds beyond `keep_bytes`.
    fn cuMemPoolTrimTo(machine; handle: u64, keep_bytes: usize) {
        machine.pools.get(handle)?;
        machine.shrink(handle, keep_bytes as u64);
        Ok(())
    }

    /// An attribute: an `int` for the three of reuse, else bytes in 64 bits.
    fn cuMemPoolGetAttribute(machine; handle: u64, attribute: i32, out: Out<c_void>) {
        out.required()?;
        let pool = machine.pools.get(handle)?;
        let bytes = match attribute {
            1..=3 => return out.typed::<i32>().set(pool.reuse[attribute as usize - 1]),
            4 => pool.threshold_bytes,
            5 => pool.reserved_bytes,
            6 => pool.reserved_high_bytes,
            7 => pool.used_bytes,
            8 => pool.used_high_bytes,
            _ => return Err(Status::INVALID_VALUE),
        };
        out.typed::<u64>().set(bytes)
    }

    /// Sets an attribute; the high-water marks can only be set back, by zero.
    fn cuMemPoolSetAttribute(machine; handle: u64, attribute: i32, value: In<c_void>) {
        let pool = machine.pools.get(handle)?;
        match attribute {
            1..=3 => pool.reuse[attribute as usize - 1] = value.typed::<i32>().read()?,
            4 => pool.threshold_bytes = value.typed::<u64>().read()?,
            6 | 8 if value.typed::<u64>().read()? != 0 => return Err(Status::INVALID_VALUE),
            6 => pool.reserved_high_bytes = pool.reserved_bytes,
            8 => pool.used_high_bytes = pool.used_bytes,
            _ => return Err(Status::INVALID_VALUE),
        }
        Ok(())
    }

    /// Every device can reach every pool already; the wish is only checked.
    fn cuMemPoolSetAccess(machine; handle: u64, wishes: In<AccessDesc>, count: usize) {
        machine.pools.get(handle)?;
        for index in 0..count {
            let wish = wishes.read_at(index)?;
            if wish.location.kind != LOCATION_DEVICE || !matches!(wish.flags, 0 | 1 | 3) {
                return Err(Status::INVALID_VALUE);
            }
            machine.device(wish.location.id)?;
        }
        Ok(())
    }

    /// What a device may do with a pool: read and write.
    fn cuMemPoolGetAccess(machine; out: Out<u32>, handle: u64, location: In<Location>) {
        out.required()?;
        machine.pools.get(handle)?;
        let location = location.read()?;
        if location.kind != LOCATION_DEVICE {
            return Err(Status::INVALID_VALUE);
        }
        machine.device(location.id)?;
        out.set(3)
    }
}
