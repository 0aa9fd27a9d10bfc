//! Memory and events that several processes share.

use crate::driver::Handle;
use crate::export::api;

/// `cudaIpcMemHandle_t` and `cudaIpcEventHandle_t`: the driver's bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Name([u8; 64]);

api! {
    /// Names memory to other processes.
    current fn cudaIpcGetMemHandle(driver, out: *mut Name, address: Handle) =
        driver.cuIpcGetMemHandle(out, address);

    /// Opens what another process named.
    current fn cudaIpcOpenMemHandle(driver, out: *mut Handle, name: Name, flags: u32) =
        driver.cuIpcOpenMemHandle(out, name, flags);

    /// Closes it.
    current fn cudaIpcCloseMemHandle(driver, address: Handle) =
        driver.cuIpcCloseMemHandle(address);

    /// Names an event to other processes.
    current fn cudaIpcGetEventHandle(driver, out: *mut Name, event: Handle) =
        driver.cuIpcGetEventHandle(out, event);

    /// Opens what another process named.
    current fn cudaIpcOpenEventHandle(driver, out: *mut Handle, name: Name) =
        driver.cuIpcOpenEventHandle(out, name);
}
