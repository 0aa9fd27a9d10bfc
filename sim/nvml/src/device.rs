//! Devices: handles, and what they are.

use crate::abi::{INVALID_ARGUMENT, NOT_FOUND, Out, Outcome, Text, entry};
use crate::driver::{Report, report, reports};

/// A device's handle: its ordinal and one, so that none is NULL.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Handle(usize);

impl Handle {
    fn new(ordinal: i32) -> Self {
        Self(ordinal as usize + 1)
    }

    /// Its ordinal.
    pub(crate) fn ordinal(self) -> Outcome<i32> {
        let ordinal = self.0.checked_sub(1).ok_or(INVALID_ARGUMENT)?;
        i32::try_from(ordinal).map_err(|_| INVALID_ARGUMENT)
    }

    /// What the driver says of it now.
    pub(crate) fn report(self) -> Outcome<Report> {
        report(self.ordinal()?)
    }
}

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfo {
    legacy_address: [u8; 16],
    domain: u32,
    bus: u32,
    device: u32,
    /// Of device and vendor: none.
    id: u32,
    subsystem: u32,
    address: [u8; 32],
}

fn uuid_text(report: &Report) -> String {
    let hex: String = report
        .uuid
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let group = |from, to| hex.get(from..to).unwrap_or_default();
    format!(
        "GPU-{}-{}-{}-{}-{}",
        group(0, 8),
        group(8, 12),
        group(12, 16),
        group(16, 20),
        group(20, 32)
    )
}

/// Domain and bus of a PCI address.
fn parse_address(text: &str) -> Option<(u32, i32)> {
    let mut parts = text.split(':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some((domain, i32::from_str_radix(parts.next()?, 16).ok()?))
}

fn bytes<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    // The last byte stays zero.
    for (to, from) in bytes.iter_mut().zip(text.bytes()).take(N - 1) {
        *to = from;
    }
    bytes
}

fn find(out: &Out<Handle>, is_it: impl Fn(&Report) -> bool) -> Outcome {
    let found = reports()?.find(|(_, report)| is_it(report));
    out.set(Handle::new(found.ok_or(NOT_FOUND)?.0))
}

fn by_index(out: &Out<Handle>, index: u32) -> Outcome {
    let ordinal = i32::try_from(index).map_err(|_| INVALID_ARGUMENT)?;
    report(ordinal)?;
    out.set(Handle::new(ordinal))
}

fn by_address(out: &Out<Handle>, address: &Text) -> Outcome {
    let (domain, bus) = parse_address(address.get()?).ok_or(INVALID_ARGUMENT)?;
    find(out, |report| domain == 0 && report.pci_bus == bus)
}

fn pci_info(handle: Handle, out: &Out<PciInfo>) -> Outcome {
    let bus = handle.report()?.pci_bus;
    out.set(PciInfo {
        legacy_address: bytes(&format!("0000:{bus:02X}:00.0")),
        domain: 0,
        bus: bus as u32,
        device: 0,
        id: 0,
        subsystem: 0,
        address: bytes(&format!("00000000:{bus:02X}:00.0")),
    })
}

entry! {
    /// How many devices there are.
    fn nvmlDeviceGetCount_v2(out: Out<u32>) {
        out.set(reports()?.count() as u32)
    }

    /// The older name.
    fn nvmlDeviceGetCount(out: Out<u32>) {
        out.set(reports()?.count() as u32)
    }

    /// The device of an index.
    fn nvmlDeviceGetHandleByIndex_v2(index: u32, out: Out<Handle>) {
        by_index(&out, index)
    }

    /// The older name.
    fn nvmlDeviceGetHandleByIndex(index: u32, out: Out<Handle>) {
        by_index(&out, index)
    }

    /// The device at a PCI address.
    fn nvmlDeviceGetHandleByPciBusId_v2(address: Text, out: Out<Handle>) {
        by_address(&out, &address)
    }

    /// The older name.
    fn nvmlDeviceGetHandleByPciBusId(address: Text, out: Out<Handle>) {
        by_address(&out, &address)
    }

    /// The device of a UUID.
    fn nvmlDeviceGetHandleByUUID(uuid: Text, out: Out<Handle>) {
        let wanted = uuid.get()?;
        find(&out, |report| uuid_text(report) == wanted)
    }

    /// A device's index.
    fn nvmlDeviceGetIndex(device: Handle, out: Out<u32>) {
        device.report()?;
        out.set(device.ordinal()? as u32)
    }

    /// A device's minor number: its index.
    fn nvmlDeviceGetMinorNumber(device: Handle, out: Out<u32>) {
        device.report()?;
        out.set(device.ordinal()? as u32)
    }

    /// A device's name.
    fn nvmlDeviceGetName(device: Handle, out: Out<u8>, room: u32) {
        let name = device.report()?.name;
        let name = String::from_utf8_lossy(&name);
        out.set_text(name.trim_end_matches('\0'), room)
    }

    /// A device's UUID.
    fn nvmlDeviceGetUUID(device: Handle, out: Out<u8>, room: u32) {
        out.set_text(&uuid_text(&device.report()?), room)
    }

    /// A device's PCI address.
    fn nvmlDeviceGetPciInfo_v3(device: Handle, out: Out<PciInfo>) {
        pci_info(device, &out)
    }

    /// A device's compute capability.
    fn nvmlDeviceGetCudaComputeCapability(device: Handle, major: Out<i32>, minor: Out<i32>) {
        let [first, second] = device.report()?.capability;
        major.set(first)?;
        minor.set(second)
    }
}
