//! Virtual memory management: physical memory, reserved addresses, and the
//! mappings between them.
//!
//! Physical memory counts its handle references and its mappings, and takes
//! bytes until both are zero: to release a handle that is mapped is the normal
//! order of events.

use std::collections::BTreeMap;

use crate::abi::{
    ALLOCATION_PINNED, AccessDesc, AllocationProp, In, LOCATION_DEVICE, LOCATION_HOST,
    LOCATION_HOST_LAST, Location, Out, Outcome, Status,
};
use crate::backing::{self, DeviceFile};
use crate::entry::entry;
use crate::ledger::{DeviceId, GRANULE_BYTES};
use crate::machine::Machine;

/// `CU_MEM_ACCESS_FLAGS_PROT_READ`.
const READ: u32 = 1;
/// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE`.
const READ_WRITE: u32 = 3;

/// Physical memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Physical {
    pub(crate) size_bytes: u64,
    /// `None` on the host.
    pub(crate) device: Option<DeviceId>,
    pub(crate) references: u64,
    pub(crate) mappings: u64,
    properties: AllocationProp,
    offset: u64,
}

/// A range of addresses that shows physical memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) size_bytes: u64,
    pub(crate) physical: u64,
    pub(crate) device: Option<DeviceId>,
    access: u32,
}

/// Everything of this family.
#[derive(Default)]
pub(crate) struct Vmm {
    file: DeviceFile,
    physical: BTreeMap<u64, Physical>,
    reservations: BTreeMap<u64, u64>,
    mappings: BTreeMap<u64, Mapping>,
}

/// Whether this is a whole number of granules, and not none.
fn whole(size_bytes: u64) -> bool {
    size_bytes != 0 && size_bytes.is_multiple_of(GRANULE_BYTES)
}

impl Vmm {
    pub(crate) fn physical(&self) -> impl Iterator<Item = (u64, &Physical)> {
        self.physical
            .iter()
            .map(|(handle, physical)| (*handle, physical))
    }

    /// Reserved ranges: address and size.
    pub(crate) fn reservations(&self) -> impl Iterator<Item = (u64, u64)> {
        self.reservations
            .iter()
            .map(|(address, size_bytes)| (*address, *size_bytes))
    }

    pub(crate) fn mappings(&self) -> impl Iterator<Item = (u64, &Mapping)> {
        self.mappings
            .iter()
            .map(|(address, mapping)| (*address, mapping))
    }

    /// The mapping that `address` lies in, with its start.
    pub(crate) fn mapping(&self, address: u64) -> Option<(u64, &Mapping)> {
        let (start, mapping) = self.mappings.range(..=address).next_back()?;
        (address - start < mapping.size_bytes).then_some((*start, mapping))
    }

    /// What keeps the bytes that an address shows: the file's descriptor, the
    /// offset, and how many bytes there are from it on.
    pub(crate) fn store(&self, address: u64) -> Option<(i32, u64, u64)> {
        let (start, mapping) = self.mapping(address)?;
        let physical = self.physical.get(&mapping.physical)?;
        let into = address - start;
        let descriptor = self.file.descriptor()?;
        Some((
            descriptor,
            physical.offset + into,
            mapping.size_bytes - into,
        ))
    }

    /// Whether the address is in a reserved range.
    pub(crate) fn reserved(&self, address: u64) -> bool {
        self.reservations
            .range(..=address)
            .next_back()
            .is_some_and(|(start, size_bytes)| address - start < *size_bytes)
    }

    /// Whether all of a range is mapped, gaplessly, with the access.
    pub(crate) fn accessible(&self, address: u64, size_bytes: u64, write: bool) -> bool {
        let needed = if write { READ_WRITE } else { READ };
        let Some(end) = address.checked_add(size_bytes) else {
            return false;
        };
        let mut at = address;
        while at < end {
            match self.mapping(at) {
                Some((start, mapping)) if mapping.access & needed == needed => {
                    at = start + mapping.size_bytes;
                }
                _ => return false,
            }
        }
        true
    }

    /// The mappings that make up exactly a range; else `INVALID_VALUE`.
    fn exactly(&self, address: u64, size_bytes: u64) -> Outcome<Vec<u64>> {
        let end = address
            .checked_add(size_bytes)
            .ok_or(Status::INVALID_VALUE)?;
        let mut starts = Vec::new();
        let mut at = address;
        while at < end {
            let mapping = self.mappings.get(&at).ok_or(Status::INVALID_VALUE)?;
            starts.push(at);
            at += mapping.size_bytes;
        }
        if at != end || starts.is_empty() {
            return Err(Status::INVALID_VALUE);
        }
        Ok(starts)
    }

    /// Whether a range lies in one reservation and shows nothing yet.
    fn free_range(&self, address: u64, size_bytes: u64) -> bool {
        let Some(end) = address.checked_add(size_bytes) else {
            return false;
        };
        let reserved = self
            .reservations
            .range(..=address)
            .next_back()
            .is_some_and(|(start, reserved_bytes)| end <= start + reserved_bytes);
        let mapped = self
            .mappings
            .range(..end)
            .next_back()
            .is_some_and(|(start, mapping)| start + mapping.size_bytes > address);
        reserved && !mapped
    }

    /// Physical memory whose handle the program may use.
    fn held(&mut self, handle: u64) -> Outcome<&mut Physical> {
        self.physical
            .get_mut(&handle)
            .filter(|physical| physical.references > 0)
            .ok_or(Status::INVALID_VALUE)
    }
}

impl Machine {
    /// The device of a location; `None` for the host.
    fn location(&self, location: Location) -> Outcome<Option<DeviceId>> {
        match location.kind {
            LOCATION_DEVICE => self.device(location.id).map(Some),
            LOCATION_HOST..=LOCATION_HOST_LAST => Ok(None),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Ends physical memory that nothing holds any more.
    fn end_if_unheld(&mut self, handle: u64) {
        let unheld = |physical: &Physical| physical.references == 0 && physical.mappings == 0;
        if !self.vmm.physical.get(&handle).is_some_and(unheld) {
            return;
        }
        if let Some(physical) = self.vmm.physical.remove(&handle) {
            self.vmm.file.discard(physical.offset, physical.size_bytes);
            if let Some(device) = physical.device {
                self.ledger.discharge(device, physical.size_bytes);
            }
        }
    }
}

entry! {
    /// The granule, for the least and the recommended one.
    fn cuMemGetAllocationGranularity(
        machine;
        out: Out<usize>,
        properties: In<AllocationProp>,
        option: u32,
    ) {
        out.required()?;
        machine.location(properties.read()?.location)?;
        if option > 1 {
            return Err(Status::INVALID_VALUE);
        }
        out.set(GRANULE_BYTES as usize)
    }

    /// Creates physical memory with one reference.
    fn cuMemCreate(
        machine;
        out: Out<u64>,
        size_bytes: usize,
        properties: In<AllocationProp>,
        flags: u64,
    ) {
        out.required()?;
        let properties = properties.read()?;
        let size_bytes = size_bytes as u64;
        if properties.kind != ALLOCATION_PINNED || !whole(size_bytes) || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let device = machine.location(properties.location)?;
        if let Some(device) = device {
            machine.ledger.charge(device, size_bytes)?;
        }
        let Some(offset) = machine.vmm.file.create(size_bytes) else {
            if let Some(device) = device {
                machine.ledger.discharge(device, size_bytes);
            }
            return Err(Status::OUT_OF_MEMORY);
        };
        let handle = machine.new_handle();
        let physical =
            Physical { size_bytes, device, references: 1, mappings: 0, properties, offset };
        machine.vmm.physical.insert(handle, physical);
        out.set(handle)
    }

    /// Drops a reference to physical memory.
    fn cuMemRelease(machine; handle: u64) {
        machine.vmm.held(handle)?.references -= 1;
        machine.end_if_unheld(handle);
        Ok(())
    }

    /// A new reference to what is mapped at an address.
    fn cuMemRetainAllocationHandle(machine; out: Out<u64>, address: u64) {
        out.required()?;
        let (_, mapping) = machine.vmm.mapping(address).ok_or(Status::INVALID_VALUE)?;
        let handle = mapping.physical;
        let physical = machine.vmm.physical.get_mut(&handle).ok_or(Status::INVALID_VALUE)?;
        physical.references += 1;
        out.set(handle)
    }

    /// What physical memory was created with.
    fn cuMemGetAllocationPropertiesFromHandle(
        machine;
        out: Out<AllocationProp>,
        handle: u64,
    ) {
        out.required()?;
        out.set(machine.vmm.held(handle)?.properties)
    }

    /// Reserves addresses; the wished one is a hint that is not taken.
    fn cuMemAddressReserve(
        machine;
        out: Out<u64>,
        size_bytes: usize,
        alignment_bytes: usize,
        _wish: u64,
        flags: u64,
    ) {
        out.required()?;
        let (size_bytes, alignment_bytes) = (size_bytes as u64, alignment_bytes as u64);
        let aligned = alignment_bytes == 0 || alignment_bytes.is_power_of_two();
        if !whole(size_bytes) || !aligned || flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let address = backing::reserve(size_bytes, alignment_bytes.max(GRANULE_BYTES))
            .ok_or(Status::OUT_OF_MEMORY)?;
        machine.vmm.reservations.insert(address, size_bytes);
        out.set(address)
    }

    /// Gives a whole reservation back, in which nothing is mapped.
    fn cuMemAddressFree(machine; address: u64, size_bytes: usize) {
        let size_bytes = size_bytes as u64;
        if machine.vmm.reservations.get(&address) != Some(&size_bytes)
            || !machine.vmm.free_range(address, size_bytes)
        {
            return Err(Status::INVALID_VALUE);
        }
        machine.vmm.reservations.remove(&address);
        // SAFETY: the range is a whole one of `backing::reserve`, unmapped.
        unsafe { backing::unmap(address, size_bytes) };
        Ok(())
    }

    /// Maps all of some physical memory into a reserved range, without access.
    /// A part of it is not supported, as with driver 580.
    fn cuMemMap(machine; address: u64, size_bytes: usize, offset: usize, handle: u64, flags: u64) {
        let size_bytes = size_bytes as u64;
        if !whole(size_bytes)
            || !address.is_multiple_of(GRANULE_BYTES)
            || flags != 0
            || !machine.vmm.free_range(address, size_bytes)
        {
            return Err(Status::INVALID_VALUE);
        }
        let physical = *machine.vmm.held(handle)?;
        if size_bytes > physical.size_bytes {
            return Err(Status::INVALID_VALUE);
        }
        if size_bytes < physical.size_bytes || offset != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        // SAFETY: the range lies in a reservation and nothing is mapped there.
        if !unsafe { machine.vmm.file.map_over(address, size_bytes, physical.offset) } {
            return Err(Status::OUT_OF_MEMORY);
        }
        machine.vmm.held(handle)?.mappings += 1;
        let device = physical.device;
        let mapping = Mapping { size_bytes, physical: handle, device, access: 0 };
        machine.vmm.mappings.insert(address, mapping);
        Ok(())
    }

    /// Takes whole mappings away.
    fn cuMemUnmap(machine; address: u64, size_bytes: usize) {
        let starts = machine.vmm.exactly(address, size_bytes as u64)?;
        // SAFETY: the range is made of mappings, which lie in reservations, and
        // the program has given them up.
        unsafe { backing::unmap_over(address, size_bytes as u64) };
        for start in starts {
            let Some(mapping) = machine.vmm.mappings.remove(&start) else { continue };
            if let Some(physical) = machine.vmm.physical.get_mut(&mapping.physical) {
                physical.mappings -= 1;
            }
            machine.end_if_unheld(mapping.physical);
        }
        Ok(())
    }

    /// Sets what devices may do with whole mappings; all devices share it.
    fn cuMemSetAccess(
        machine;
        address: u64,
        size_bytes: usize,
        wishes: In<AccessDesc>,
        count: usize,
    ) {
        let starts = machine.vmm.exactly(address, size_bytes as u64)?;
        if count == 0 {
            return Err(Status::INVALID_VALUE);
        }
        let mut access = 0;
        for index in 0..count {
            let wish = wishes.read_at(index)?;
            machine.location(wish.location)?;
            if !matches!(wish.flags, 0 | READ | READ_WRITE) {
                return Err(Status::INVALID_VALUE);
            }
            access |= wish.flags;
        }
        // SAFETY: the range is made of mappings.
        unsafe {
            backing::protect(address, size_bytes as u64, access & READ != 0, access == READ_WRITE);
        };
        for start in starts {
            if let Some(mapping) = machine.vmm.mappings.get_mut(&start) {
                mapping.access = access;
            }
        }
        Ok(())
    }

    /// What may be done at an address.
    fn cuMemGetAccess(machine; out: Out<u64>, location: In<Location>, address: u64) {
        out.required()?;
        machine.location(location.read()?)?;
        let (_, mapping) = machine.vmm.mapping(address).ok_or(Status::INVALID_VALUE)?;
        out.set(u64::from(mapping.access))
    }
}
