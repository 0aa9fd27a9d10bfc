//! The fabric that joins devices of several hosts: there is none, and that is an answer. PyTorch 2.13 asks before it takes
//! expandable segments, and an error stops it.

use crate::abi::{Out, entry};
use crate::device::Handle;

/// `NVML_GPU_FABRIC_STATE_NOT_SUPPORTED`.
const NO_FABRIC: u8 = 0;

/// `nvmlGpuFabricInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Fabric {
    cluster: [u8; 16],
    status: i32,
    clique: u32,
    state: u8,
}

const NONE: Fabric = Fabric {
    cluster: [0; 16],
    status: 0,
    clique: 0,
    state: NO_FABRIC,
};

/// The head of `nvmlGpuFabricInfoV_t`, which the versions after the first only lengthen.
#[repr(C)]
#[derive(Clone, Copy)]
struct Versioned {
    version: u32,
    fabric: Fabric,
}

entry! {
    /// What fabric a device is in.
    fn nvmlDeviceGetGpuFabricInfo(device: Handle, out: Out<Fabric>) {
        device.report()?;
        out.set(NONE)
    }

    /// The same, for any version of the structure.
    fn nvmlDeviceGetGpuFabricInfoV(device: Handle, out: Out<Versioned>) {
        device.report()?;
        let version = out.get()?.version;
        out.set(Versioned { version, fabric: NONE })
    }
}
