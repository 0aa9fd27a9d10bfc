//! Start-up and the devices: what they are called, what they can do.

use std::ffi::c_char;

use crate::abi::{In, Out, Outcome, Status};
use crate::config;
use crate::entry::entry;
use crate::ledger::DeviceId;
use crate::machine::Machine;

/// PCI bus of the first device; each has its own.
const FIRST_PCI_BUS: i32 = 0x10;
/// Largest attribute number that is answered.
const LAST_ATTRIBUTE: i32 = 160;

/// The UUID of a device: the same in every process.
pub(crate) fn uuid(device: DeviceId) -> [u8; 16] {
    let mut uuid = *b"gpumem-simulated";
    // Version 8 (custom) and the variant, as RFC 9562 has it.
    uuid[6] = 0x80;
    uuid[8] = 0x80;
    // In the first eight digits, which is how people shorten a UUID.
    uuid[3] = device.index() as u8;
    uuid
}

/// The UUID as tools print it: `GPU-` and five groups.
pub(crate) fn uuid_text(device: DeviceId) -> String {
    let hex: String = uuid(device)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// The PCI bus of a device.
pub(crate) fn pci_bus(device: DeviceId) -> i32 {
    // At most `config::MAX_DEVICES` of them.
    FIRST_PCI_BUS + device.index() as i32
}

/// `domain:bus:device.function`.
pub(crate) fn pci_text(device: DeviceId) -> String {
    format!("0000:{:02X}:00.0", pci_bus(device))
}

/// What every device is called.
pub(crate) fn name() -> &'static str {
    config::get().device.name
}

/// Compute capability, major and minor.
pub(crate) fn capability() -> (i32, i32) {
    let (major, minor) = config::get().device.compute;
    (major as i32, minor as i32)
}

/// The value of an attribute (`CUdevice_attribute`); zero when there is nothing
/// to say of it.
fn attribute(device: DeviceId, attribute: i32) -> Outcome<i32> {
    let model = config::get().device;
    let limits = model.limits();
    let (major, minor) = capability();
    let value = match attribute {
        1..=3 => 1024,                      // threads of a block, and its first two sides
        4 => 64,                            // its third
        5 | 11 => i32::MAX,                 // blocks of a grid, and a pitch
        6 | 7 => 65_535,                    // its other sides
        8 => 48 << 10,                      // shared memory of a block
        9 => 64 << 10,                      // constant memory
        10 => 32,                           // warp
        12 | 82 => 64 << 10,                // registers of a block and of a multiprocessor
        13 => model.clock_khz as i32,       // clock
        14 => 512,                          // texture alignment
        15 | 31 | 41 => 1,                  // overlap, concurrent kernels, unified addresses
        16 => model.multiprocessors as i32, // multiprocessors
        19 => 1,                            // can map host memory
        32 => i32::from(model.ecc),         // error correction
        33 => pci_bus(device),
        36 => model.memory_clock_khz as i32, // memory clock
        37 => model.bus_bits as i32,         // bus width
        38 => model.l2_bytes as i32,         // level 2 cache
        39 => limits.threads as i32,         // threads of a multiprocessor
        40 => 3,                             // copy engines
        75 => major,
        76 => minor,
        78 | 79 | 80 | 83 | 89 => 1, // priorities, caches, managed memory
        81 => limits.shared_bytes as i32, // shared memory of a multiprocessor
        97 => limits.shared_of_block_bytes as i32, // what of it a block can opt into
        95 | 99 | 102 | 115 => 1,    // cooperative launch, registration, VMM, pools
        120 => i32::from(major >= 9), // clusters
        106 => limits.blocks as i32, // blocks of a multiprocessor
        111 => limits.reserved_of_block_bytes as i32, // reserved shared memory of a block
        id if (1..=LAST_ATTRIBUTE).contains(&id) => 0,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(value)
}

impl Machine {
    fn device_uuid(&self, out: &Out<[u8; 16]>, ordinal: i32) -> Outcome {
        out.set(uuid(self.device(ordinal)?))
    }
}

entry! {
    /// Starts the driver; flags must be zero. `NO_DEVICE` when the program sees
    /// none: all else then answers `NOT_INITIALIZED` (JuliaGPU/CUDA.jl#1331).
    free fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        if crate::machine::forked() {
            return Err(Status::NOT_INITIALIZED);
        }
        crate::machine::lock().initialise()
    }

    /// The stated version.
    free fn cuDriverGetVersion(out: Out<i32>) {
        out.set(config::get().driver_version)
    }

    /// How many devices the program sees.
    fn cuDeviceGetCount(machine; out: Out<i32>) {
        out.set(machine.visible().devices().len() as i32)
    }

    /// The device of an ordinal: the same number.
    fn cuDeviceGet(machine; out: Out<i32>, ordinal: i32) {
        out.required()?;
        machine.device(ordinal)?;
        out.set(ordinal)
    }

    /// The name, cut to the buffer.
    fn cuDeviceGetName(machine; out: Out<u8>, length: i32, device: i32) {
        out.required()?;
        machine.device(device)?;
        out.set_text(name(), length)
    }

    /// The UUID.
    fn cuDeviceGetUuid_v2(machine; out: Out<[u8; 16]>, device: i32) {
        machine.device_uuid(&out, device)
    }

    /// The older name of the same, since no device is divided here.
    fn cuDeviceGetUuid(machine; out: Out<[u8; 16]>, device: i32) {
        machine.device_uuid(&out, device)
    }

    /// All memory of the device.
    fn cuDeviceTotalMem_v2(machine; out: Out<usize>, device: i32) {
        out.required()?;
        let device = machine.device(device)?;
        out.set(machine.ledger.account(device).limit_bytes as usize)
    }

    /// One attribute.
    fn cuDeviceGetAttribute(machine; out: Out<i32>, id: i32, device: i32) {
        out.required()?;
        out.set(attribute(machine.device(device)?, id)?)
    }

    /// Compute capability.
    fn cuDeviceComputeCapability(machine; major: Out<i32>, minor: Out<i32>, device: i32) {
        major.required()?;
        minor.required()?;
        machine.device(device)?;
        let capability = capability();
        major.set(capability.0)?;
        minor.set(capability.1)
    }

    /// The PCI address as text.
    fn cuDeviceGetPCIBusId(machine; out: Out<u8>, length: i32, device: i32) {
        out.required()?;
        out.set_text(&pci_text(machine.device(device)?), length)
    }

    /// The device at a PCI address, if the program sees it.
    fn cuDeviceGetByPCIBusId(machine; out: Out<i32>, address: In<c_char>) {
        out.required()?;
        let wanted = address.text()?;
        let mut visible = machine.visible().devices().iter();
        let place = visible.position(|device| pci_text(*device).eq_ignore_ascii_case(wanted));
        out.set(place.ok_or(Status::INVALID_DEVICE)? as i32)
    }

    /// How two devices reach each other (`CUdevice_P2PAttribute`): they do (2),
    /// without atomic operations.
    fn cuDeviceGetP2PAttribute(machine; out: Out<i32>, attribute: i32, device: i32, peer: i32) {
        out.required()?;
        let (device, peer) = (machine.device(device)?, machine.device(peer)?);
        if device == peer {
            return Err(Status::INVALID_DEVICE);
        }
        match attribute {
            2 => out.set(1),
            1 | 3..=5 => out.set(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    /// Each device can reach each other one.
    fn cuDeviceCanAccessPeer(machine; out: Out<i32>, device: i32, peer: i32) {
        out.required()?;
        let (device, peer) = (machine.device(device)?, machine.device(peer)?);
        out.set(i32::from(device != peer))
    }
}
