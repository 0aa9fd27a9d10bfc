//! Events.

use crate::driver::Handle;
use crate::export::api;

api! {
    /// Creates an event.
    current fn cudaEventCreate(driver, out: *mut Handle) = driver.cuEventCreate(out, 0);

    /// Creates an event with flags.
    current fn cudaEventCreateWithFlags(driver, out: *mut Handle, flags: u32) =
        driver.cuEventCreate(out, flags);

    /// Destroys an event.
    current fn cudaEventDestroy(driver, event: Handle) = driver.cuEventDestroy(event);

    /// Records an event.
    current fn cudaEventRecord(driver, event: Handle, stream: Handle) =
        driver.cuEventRecord(event, stream);

    /// Records an event with flags.
    current fn cudaEventRecordWithFlags(driver, event: Handle, stream: Handle, flags: u32) =
        driver.cuEventRecordWithFlags(event, stream, flags);

    /// Whether an event is done.
    current fn cudaEventQuery(driver, event: Handle) = driver.cuEventQuery(event);

    /// Waits for an event.
    current fn cudaEventSynchronize(driver, event: Handle) = driver.cuEventSynchronize(event);

    /// Milliseconds between two events.
    current fn cudaEventElapsedTime(driver, out: *mut f32, start: Handle, end: Handle) =
        driver.cuEventElapsedTime(out, start, end);
}
