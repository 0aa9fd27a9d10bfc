//! The simulated driver's account of its devices.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::abi::{DRIVER_NOT_LOADED, INVALID_ARGUMENT, Outcome};

/// What the driver says of a device; the same structure as its own.
#[repr(C)]
pub(crate) struct Report {
    pub(crate) memory_bytes: u64,
    pub(crate) charged_bytes: u64,
    pub(crate) uuid: [u8; 16],
    pub(crate) pci_bus: i32,
    pub(crate) driver_version: i32,
    pub(crate) capability: [i32; 2],
    pub(crate) name: [u8; 64],
}

/// A process that has memory of a device; the same structure as its own.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessReport {
    pub(crate) pid: u32,
    reserved: u32,
    pub(crate) charged_bytes: u64,
}

type AskDevice = unsafe extern "C" fn(i32, *mut Report) -> i32;
type AskProcesses = unsafe extern "C" fn(i32, *mut ProcessReport, u32) -> i32;

/// The driver's two functions.
struct Driver {
    device: AskDevice,
    processes: AskProcesses,
}

fn driver() -> Outcome<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER
        .get_or_init(|| {
            // SAFETY: zero-ended names; the library stays for the life of the
            // process, and its functions of these names have these signatures. A
            // driver without them is not the simulated one.
            unsafe {
                let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
                if library.is_null() {
                    return None;
                }
                let device = libc::dlsym(library, c"gpumem_sim_device".as_ptr());
                let processes = libc::dlsym(library, c"gpumem_sim_processes".as_ptr());
                if device.is_null() || processes.is_null() {
                    return None;
                }
                Some(Driver {
                    device: std::mem::transmute::<*mut c_void, AskDevice>(device),
                    processes: std::mem::transmute::<*mut c_void, AskProcesses>(processes),
                })
            }
        })
        .as_ref()
        .ok_or(DRIVER_NOT_LOADED)
}

/// The driver's report on a device, or why there is none.
pub(crate) fn report(ordinal: i32) -> Outcome<Report> {
    let driver = driver()?;
    let mut report = Report {
        memory_bytes: 0,
        charged_bytes: 0,
        uuid: [0; 16],
        pci_bus: 0,
        driver_version: 0,
        capability: [0; 2],
        name: [0; 64],
    };
    // SAFETY: the report has room.
    match unsafe { (driver.device)(ordinal, &mut report) } {
        0 => Ok(report),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// The processes that have memory of a device.
pub(crate) fn processes(ordinal: i32) -> Outcome<Vec<ProcessReport>> {
    let driver = driver()?;
    let mut reports = Vec::new();
    loop {
        let room = reports.len() as u32;
        // SAFETY: the list has that room.
        let count = unsafe { (driver.processes)(ordinal, reports.as_mut_ptr(), room) };
        let count = usize::try_from(count).map_err(|_| INVALID_ARGUMENT)?;
        if count <= reports.len() {
            reports.truncate(count);
            return Ok(reports);
        }
        // More than there was room for; and others may come meanwhile.
        reports.resize(count + 8, ProcessReport::default());
    }
}

/// All devices: ordinal and report.
pub(crate) fn reports() -> Outcome<impl Iterator<Item = (i32, Report)>> {
    driver()?;
    Ok((0..).map_while(|ordinal| Some((ordinal, report(ordinal).ok()?))))
}
