//! The account of a device, for the simulated management library: the one
//! function that other simulated libraries ask this one for.

use crate::abi::Out;
use crate::device;
use crate::machine;

/// What is said of a device. Both sides of the call are built together.
#[repr(C)]
pub(crate) struct DeviceReport {
    memory_bytes: u64,
    /// Taken by this process, contexts included.
    charged_bytes: u64,
    uuid: [u8; 16],
    pci_bus: i32,
    driver_version: i32,
    capability: [i32; 2],
    name: [u8; 64],
}

/// Reports on a device: 0, or -1 when there is no such device, or in a forked
/// child, where this process's driver is gone. It works before `cuInit`. Not
/// part of CUDA.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpumem_sim_device(ordinal: i32, out: Out<DeviceReport>) -> i32 {
    if machine::forked() {
        return -1;
    }
    let machine = machine::lock();
    let Some(device) = machine.ledger.device(ordinal) else {
        return -1;
    };
    let account = machine.ledger.account(device);
    let mut name = [0; 64];
    for (to, from) in name.iter_mut().zip(device::NAME.bytes()) {
        *to = from;
    }
    let report = DeviceReport {
        memory_bytes: account.limit_bytes,
        charged_bytes: account.charged_bytes,
        uuid: device::uuid(device),
        pci_bus: device::FIRST_PCI_BUS + device.ordinal(),
        driver_version: crate::config::get().driver_version,
        capability: [device::CAPABILITY.0, device::CAPABILITY.1],
        name,
    };
    out.set(report).map_or(-1, |()| 0)
}
