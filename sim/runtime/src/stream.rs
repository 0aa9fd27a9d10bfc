//! Streams.

use crate::driver::Handle;
use crate::export::api;

api! {
    /// Creates a stream.
    current fn cudaStreamCreate(driver, out: *mut Handle) = driver.cuStreamCreate(out, 0);

    /// Creates a stream with flags.
    current fn cudaStreamCreateWithFlags(driver, out: *mut Handle, flags: u32) =
        driver.cuStreamCreate(out, flags);

    /// Creates a stream with flags and a priority.
    current fn cudaStreamCreateWithPriority(
        driver, out: *mut Handle, flags: u32, priority: i32
    ) = driver.cuStreamCreateWithPriority(out, flags, priority);

    /// Destroys a stream.
    current fn cudaStreamDestroy(driver, stream: Handle) = driver.cuStreamDestroy(stream);

    /// Waits for a stream.
    current fn cudaStreamSynchronize(driver, stream: Handle) = driver.cuStreamSynchronize(stream);

    /// Whether a stream is idle.
    current fn cudaStreamQuery(driver, stream: Handle) = driver.cuStreamQuery(stream);

    /// Makes a stream wait for an event.
    current fn cudaStreamWaitEvent(driver, stream: Handle, event: Handle, flags: u32) =
        driver.cuStreamWaitEvent(stream, event, flags);

    /// A stream's priority.
    current fn cudaStreamGetPriority(driver, stream: Handle, out: *mut i32) =
        driver.cuStreamGetPriority(stream, out);

    /// A stream's flags.
    current fn cudaStreamGetFlags(driver, stream: Handle, out: *mut u32) =
        driver.cuStreamGetFlags(stream, out);

    /// A stream's number.
    current fn cudaStreamGetId(driver, stream: Handle, out: *mut u64) =
        driver.cuStreamGetId(stream, out);

    /// Calls the program when a stream comes to it; error numbers are shared.
    current fn cudaStreamAddCallback(
        driver, stream: Handle, function: Handle, argument: Handle, flags: u32
    ) = driver.cuStreamAddCallback(stream, function, argument, flags);

    /// The newer kind.
    current fn cudaLaunchHostFunc(driver, stream: Handle, function: Handle, argument: Handle) =
        driver.cuLaunchHostFunc(stream, function, argument);
}
