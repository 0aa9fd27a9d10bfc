//! Captures and graphs.

use std::ffi::c_void;

use crate::driver::Handle;
use crate::export::api;

api! {
    /// Begins a capture.
    current fn cudaStreamBeginCapture(driver, stream: Handle, mode: i32) =
        driver.cuStreamBeginCapture(stream, mode);

    /// Begins a capture that adds to a graph.
    current fn cudaStreamBeginCaptureToGraph(
        driver, stream: Handle, graph: Handle, dependencies: Handle, edges: Handle,
        count: usize, mode: i32,
    ) = driver.cuStreamBeginCaptureToGraph(stream, graph, dependencies, edges, count, mode);

    /// Ends a capture.
    current fn cudaStreamEndCapture(driver, stream: Handle, out: *mut Handle) =
        driver.cuStreamEndCapture(stream, out);

    /// Whether a stream is captured.
    current fn cudaStreamIsCapturing(driver, stream: Handle, out: *mut i32) =
        driver.cuStreamIsCapturing(stream, out);

    /// Swaps the thread's capture mode.
    loaded fn cudaThreadExchangeStreamCaptureMode(driver, mode: *mut i32) =
        driver.cuThreadExchangeStreamCaptureMode(mode);

    /// Creates a graph.
    loaded fn cudaGraphCreate(driver, out: *mut Handle, flags: u32) =
        driver.cuGraphCreate(out, flags);

    /// Destroys a graph.
    loaded fn cudaGraphDestroy(driver, graph: Handle) = driver.cuGraphDestroy(graph);

    /// Makes a graph executable.
    loaded fn cudaGraphInstantiate(driver, out: *mut Handle, graph: Handle, flags: u64) =
        driver.cuGraphInstantiateWithFlags(out, graph, flags);

    /// The same.
    loaded fn cudaGraphInstantiateWithFlags(driver, out: *mut Handle, graph: Handle, flags: u64) =
        driver.cuGraphInstantiateWithFlags(out, graph, flags);

    /// Destroys an executable graph.
    loaded fn cudaGraphExecDestroy(driver, executable: Handle) =
        driver.cuGraphExecDestroy(executable);

    /// Launches a graph.
    current fn cudaGraphLaunch(driver, executable: Handle, stream: Handle) =
        driver.cuGraphLaunch(executable, stream);

    /// Readies a graph.
    current fn cudaGraphUpload(driver, executable: Handle, stream: Handle) =
        driver.cuGraphUpload(executable, stream);

    /// A graph's nodes.
    loaded fn cudaGraphGetNodes(driver, graph: Handle, out: *mut Handle, count: *mut usize) =
        driver.cuGraphGetNodes(graph, out, count);

    /// Gives back memory of graphs.
    loaded fn cudaDeviceGraphMemTrim(driver, device: i32) = driver.cuDeviceGraphMemTrim(device);

    /// Memory of graphs.
    loaded fn cudaDeviceGetGraphMemAttribute(
        driver, device: i32, attribute: i32, out: *mut c_void
    ) = driver.cuDeviceGetGraphMemAttribute(device, attribute, out);
}
