//! Start, end, versions, and what errors are called.

use std::ffi::c_char;

use crate::abi::{Out, entry};
use crate::driver::{report, reports};

entry! {
    /// Starts the library: it needs the simulated driver.
    fn nvmlInit_v2() {
        reports().map(drop)
    }

    /// The older name.
    fn nvmlInit() {
        reports().map(drop)
    }

    /// The same with flags, which mean nothing here.
    fn nvmlInitWithFlags(_flags: u32) {
        reports().map(drop)
    }

    /// There is nothing to end.
    fn nvmlShutdown() {
        Ok(())
    }

    /// The driver's version as text: numbers alone, since programs (XLA) read it
    /// as such, and none that a driver ever had.
    fn nvmlSystemGetDriverVersion(out: Out<u8>, room: u32) {
        out.set_text("0.0.0", room)
    }

    /// The library's version as text, which says what it is.
    fn nvmlSystemGetNVMLVersion(out: Out<u8>, room: u32) {
        out.set_text("13.580.0-simulated", room)
    }

    /// The CUDA version that the driver states.
    fn nvmlSystemGetCudaDriverVersion_v2(out: Out<i32>) {
        out.set(report(0)?.driver_version)
    }

    /// The older name.
    fn nvmlSystemGetCudaDriverVersion(out: Out<i32>) {
        out.set(report(0)?.driver_version)
    }
}

/// What an error is called; it lives for ever.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(status: i32) -> *const c_char {
    let text = match status {
        0 => c"Success",
        2 => c"Invalid Argument",
        3 => c"Not Supported by the simulated device",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        9 => c"The simulated driver is not loaded",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}
