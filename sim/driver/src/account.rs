//! The account of a device, for the simulated management library: the only
//! functions that other simulated libraries ask this one for. They work before
//! `cuInit`, tell of all devices by the machine's numbers, whichever of them the
//! program sees, and are no part of CUDA.

use crate::abi::Out;
use crate::device;
use crate::machine::{self, Machine};

/// What is said of a device. Both sides of the call are built together.
#[repr(C)]
pub(crate) struct DeviceReport {
    memory_bytes: u64,
    /// Taken by all processes that share the device, contexts included.
    charged_bytes: u64,
    uuid: [u8; 16],
    pci_bus: i32,
    driver_version: i32,
    capability: [i32; 2],
    name: [u8; 64],
}

/// A process that has memory of a device.
#[repr(C)]
pub(crate) struct ProcessReport {
    pid: u32,
    reserved: u32,
    charged_bytes: u64,
}

/// Runs `body` on the machine: -1 in a forked child, where this process's driver
/// is gone, and where there is no answer.
fn answer(body: impl FnOnce(&Machine) -> Option<i32>) -> i32 {
    if machine::forked() {
        return -1;
    }
    body(&machine::lock()).unwrap_or(-1)
}

/// Reports on a device: 0, or -1 when there is no such device.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpumem_sim_device(number: i32, out: Out<DeviceReport>) -> i32 {
    answer(|machine| {
        let device = machine.ledger.device(number)?;
        let mut name = [0; 64];
        for (to, from) in name.iter_mut().zip(device::name().bytes()) {
            *to = from;
        }
        let (major, minor) = device::capability();
        let report = DeviceReport {
            memory_bytes: machine.ledger.account(device).limit_bytes,
            charged_bytes: machine.ledger.taken_bytes(device),
            uuid: device::uuid(device),
            pci_bus: device::pci_bus(device),
            driver_version: crate::config::get().driver_version,
            capability: [major, minor],
            name,
        };
        out.set(report).ok().map(|()| 0)
    })
}

/// Lists the processes that have memory of a device, as many as there is `room`
/// for: how many there are, or -1 when there is no such device.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpumem_sim_processes(
    number: i32,
    out: Out<ProcessReport>,
    room: u32,
) -> i32 {
    answer(|machine| {
        let device = machine.ledger.device(number)?;
        let own_bytes = machine.ledger.account(device).charged_bytes;
        let own = (own_bytes > 0).then(|| (std::process::id(), own_bytes));
        let others = machine.ledger.other_processes(device);
        let all: Vec<_> = own.into_iter().chain(others).collect();
        for (index, (pid, charged_bytes)) in all.iter().take(room as usize).enumerate() {
            let report = ProcessReport {
                pid: *pid,
                reserved: 0,
                charged_bytes: *charged_bytes,
            };
            out.set_at(index, report).ok()?;
        }
        i32::try_from(all.len()).ok()
    })
}
