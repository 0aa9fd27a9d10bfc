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

type Ask = unsafe extern "C" fn(i32, *mut Report) -> i32;

fn ask() -> Outcome<Ask> {
    static ASK: OnceLock<Option<Ask>> = OnceLock::new();
    ASK.get_or_init(|| {
        // SAFETY: zero-ended names; the library stays for the life of the
        // process, and its function of this name has this signature. A driver
        // without it is not the simulated one.
        unsafe {
            let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
            if library.is_null() {
                return None;
            }
            let found = libc::dlsym(library, c"gpumem_sim_device".as_ptr());
            std::mem::transmute::<*mut c_void, Option<Ask>>(found)
        }
    })
    .ok_or(DRIVER_NOT_LOADED)
}

/// The driver's report on a device, or why there is none.
pub(crate) fn report(ordinal: i32) -> Outcome<Report> {
    let ask = ask()?;
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
    match unsafe { ask(ordinal, &mut report) } {
        0 => Ok(report),
        _ => Err(INVALID_ARGUMENT),
    }
}

/// All devices: ordinal and report.
pub(crate) fn reports() -> Outcome<impl Iterator<Item = (i32, Report)>> {
    ask()?;
    Ok((0..).map_while(|ordinal| Some((ordinal, report(ordinal).ok()?))))
}
