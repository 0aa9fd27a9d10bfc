//! Memory of devices, and the processes on them.

use crate::abi::{INSUFFICIENT_SIZE, INVALID_ARGUMENT, Out, Outcome, entry};
use crate::device::Handle;
use crate::driver::{self, ProcessReport};

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total_bytes: u64,
    free_bytes: u64,
    used_bytes: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryV2 {
    version: u32,
    padding: u32,
    total_bytes: u64,
    reserved_bytes: u64,
    free_bytes: u64,
    used_bytes: u64,
}

/// `nvmlProcessInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Process {
    pid: u32,
    padding: u32,
    used_bytes: u64,
    /// Of a divided device: none.
    instances: [u32; 2],
}

/// `nvmlProcessInfo_v1_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessV1 {
    pid: u32,
    padding: u32,
    used_bytes: u64,
}

/// What stands for no instance.
const NO_INSTANCE: u32 = u32::MAX;

/// The processes that have memory of a device; `describe` makes an entry.
/// `count` says how many there is room for, and is told how many there are: with
/// less room than that, nothing else is answered.
fn processes<P: Copy>(
    device: Handle,
    count: &Out<u32>,
    out: &Out<P>,
    describe: impl Fn(&ProcessReport) -> P,
) -> Outcome {
    let processes = driver::processes(device.ordinal()?)?;
    let room = count.get()?;
    count.set(processes.len() as u32)?;
    if processes.len() > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (index, process) in processes.iter().enumerate() {
        out.set_at(index, describe(process))?;
    }
    Ok(())
}

/// An entry in the newer versions.
fn newer(process: &ProcessReport) -> Process {
    Process {
        pid: process.pid,
        padding: 0,
        used_bytes: process.charged_bytes,
        instances: [NO_INSTANCE; 2],
    }
}

/// An entry in the first version.
fn first(process: &ProcessReport) -> ProcessV1 {
    ProcessV1 {
        pid: process.pid,
        padding: 0,
        used_bytes: process.charged_bytes,
    }
}

entry! {
    /// Memory of a device.
    fn nvmlDeviceGetMemoryInfo(device: Handle, out: Out<Memory>) {
        let report = device.report()?;
        out.set(Memory {
            total_bytes: report.memory_bytes,
            free_bytes: report.memory_bytes - report.charged_bytes,
            used_bytes: report.charged_bytes,
        })
    }

    /// The same, of which nothing is reserved; the caller states the version.
    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, out: Out<MemoryV2>) {
        let report = device.report()?;
        let version = out.get()?.version;
        if version != size_of::<MemoryV2>() as u32 | 2 << 24 {
            return Err(INVALID_ARGUMENT);
        }
        out.set(MemoryV2 {
            version,
            padding: 0,
            total_bytes: report.memory_bytes,
            reserved_bytes: 0,
            free_bytes: report.memory_bytes - report.charged_bytes,
            used_bytes: report.charged_bytes,
        })
    }

    /// Processes that compute on a device.
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: Handle, count: Out<u32>, out: Out<Process>
    ) {
        processes(device, &count, &out, newer)
    }

    /// The same in the second version, which has the same structure.
    fn nvmlDeviceGetComputeRunningProcesses_v2(
        device: Handle, count: Out<u32>, out: Out<Process>
    ) {
        processes(device, &count, &out, newer)
    }

    /// The same in the first version.
    fn nvmlDeviceGetComputeRunningProcesses(
        device: Handle, count: Out<u32>, out: Out<ProcessV1>
    ) {
        processes(device, &count, &out, first)
    }

    /// Processes that draw on a device: none.
    fn nvmlDeviceGetGraphicsRunningProcesses_v3(
        device: Handle, count: Out<u32>, _out: Out<Process>
    ) {
        device.report()?;
        count.set(0)
    }
}
