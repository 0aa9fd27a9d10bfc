//! What the driver says of an address.

use std::ffi::c_void;

use crate::abi::{In, Out, Outcome, Status};
use crate::entry::entry;
use crate::ledger::DeviceId;
use crate::machine::Machine;
use crate::memory::Kind;

/// `CU_MEMORYTYPE_HOST`.
const HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`.
const DEVICE: u32 = 2;

/// `CU_DEVICE_INVALID`.
const INVALID_DEVICE: i32 = -2;

/// What is known of the memory around an address.
struct Place {
    start: u64,
    size_bytes: u64,
    device: Option<DeviceId>,
    context: u64,
    pool: u64,
    managed: bool,
}

impl Machine {
    fn place(&self, address: u64) -> Outcome<Place> {
        if let Some((start, allocation)) = self.memory.containing(address) {
            let pool = match allocation.kind {
                Kind::PoolBlock { pool, .. } => pool,
                _ => 0,
            };
            return Ok(Place {
                start,
                size_bytes: allocation.size_bytes,
                device: allocation.device,
                context: allocation.context.unwrap_or(0),
                pool,
                managed: allocation.kind == Kind::Managed,
            });
        }
        let (start, mapping) = self.vmm.mapping(address).ok_or(Status::INVALID_VALUE)?;
        let (size_bytes, device) = (mapping.size_bytes, mapping.device);
        Ok(Place {
            start,
            size_bytes,
            device,
            context: 0,
            pool: 0,
            managed: false,
        })
    }
}

impl Machine {
    /// Answers an attribute, whose type depends on which one it is.
    fn pointer_attribute(&self, out: &Out<c_void>, attribute: i32, address: u64) -> Outcome {
        let place = self.place(address)?;
        // An allocation that the host owns belongs to the current device.
        let device = place
            .device
            .or_else(|| Some(self.contexts.current().ok()?.device))
            .map_or(0, |device| self.visible().ordinal_or_invalid(device));
        let on_host = place.device.is_none();
        match attribute {
            1 => out.typed::<u64>().set(place.context),
            2 => out.typed::<u32>().set(if on_host { HOST } else { DEVICE }),
            3 => out.typed::<u64>().set(address),
            4 if on_host || place.managed => out.typed::<u64>().set(address),
            8 => out.typed::<u32>().set(u32::from(place.managed)),
            9 => out.typed::<i32>().set(device),
            11 => out.typed::<u64>().set(place.start),
            12 => out.typed::<usize>().set(place.size_bytes as usize),
            13 => out.typed::<u32>().set(1),
            17 => out.typed::<u64>().set(place.pool),
            _ => Err(Status::INVALID_VALUE),
        }
    }
}

/// Answers "nothing" for an attribute that an address does not have: zeros, and
/// as the device's ordinal `CU_DEVICE_INVALID`.
fn answer_nothing(out: &Out<c_void>, attribute: i32) -> Outcome {
    match attribute {
        9 => out.typed::<i32>().set(INVALID_DEVICE),
        2 | 6 | 16 => out.typed::<u32>().set(0),
        8 | 10 | 13 | 15 | 21 => out.typed::<u8>().set(0),
        5 => out.typed::<[u64; 2]>().set([0; 2]),
        1..=20 => out.typed::<u64>().set(0),
        _ => Err(Status::INVALID_VALUE),
    }
}

entry! {
    /// One attribute (`CUpointer_attribute`) of an address.
    fn cuPointerGetAttribute(machine; out: Out<c_void>, attribute: i32, address: u64) {
        out.required()?;
        machine.pointer_attribute(&out, attribute, address)
    }

    /// Several attributes of any address: what there is not to say of it is
    /// said by zeros, so that a program can ask for host memory, too.
    fn cuPointerGetAttributes(
        machine;
        count: u32, attributes: In<i32>, outs: In<Out<c_void>>, address: u64
    ) {
        for index in 0..count as usize {
            let (attribute, out) = (attributes.read_at(index)?, outs.read_at(index)?);
            out.required()?;
            if machine.pointer_attribute(&out, attribute, address).is_err() {
                answer_nothing(&out, attribute)?;
            }
        }
        Ok(())
    }

    /// Start and size of the memory that an address lies in; both optional.
    fn cuMemGetAddressRange_v2(machine; start: Out<u64>, size_bytes: Out<usize>, address: u64) {
        machine.contexts.current()?;
        let place = machine.place(address).map_err(|_| Status::NOT_FOUND)?;
        start.set_if_wanted(place.start);
        size_bytes.set_if_wanted(place.size_bytes as usize);
        Ok(())
    }
}
