//! Work, captures and graphs.
//!
//! What a call gives to a stream is done at once; a captured stream puts it
//! into a graph instead, and each launch of the graph does it. A graph keeps
//! its nodes in the order of the calls, which every dependency allows.

use std::collections::BTreeMap;
use std::ffi::c_void;

use crate::abi::{In, Out, Outcome, Status};
use crate::copy::Copy2D;
use crate::entry::entry;
use crate::fill::Fill;
use crate::launch::{HostCall, Kernel};
use crate::machine::Machine;
use crate::stream::{DefaultStream, StreamId, StreamRef};

/// `CU_STREAM_CAPTURE_STATUS_ACTIVE`.
const ACTIVE: i32 = 1;

/// Something that a stream does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    /// Takes time and has no other effect.
    Kernel(Kernel),
    Copy(Copy2D),
    Fill(Fill),
    Host(HostCall),
}

/// A capture, by a number that no other one of this process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CaptureId(u64);

/// A capture that has begun and not ended.
#[derive(Clone, Copy, Debug)]
struct Capture {
    graph: u64,
    /// The stream that it must end on.
    origin: u64,
}

/// The nodes of a graph: handle and work.
type Nodes = Vec<(u64, Work)>;

/// All graphs, executable graphs and captures.
#[derive(Default)]
pub(crate) struct Graphs {
    graphs: BTreeMap<u64, Nodes>,
    executables: BTreeMap<u64, Nodes>,
    captures: BTreeMap<CaptureId, Capture>,
}

impl Graphs {
    /// Whether a capture goes on.
    pub(crate) fn capturing(&self, capture: CaptureId) -> bool {
        self.captures.contains_key(&capture)
    }
}

impl Machine {
    /// Gives work to a stream: done now, or captured.
    pub(crate) fn submit(&mut self, stream: &StreamRef, work: Work) -> Outcome {
        let Some(id) = stream.capture else {
            return self.perform(stream, work);
        };
        let node = self.new_handle();
        let capture = self.graphs.captures.get(&id);
        let nodes = capture.and_then(|capture| self.graphs.graphs.get_mut(&capture.graph));
        // The program destroyed the graph that it captures into.
        let nodes = nodes.ok_or(Status::STREAM_CAPTURE_INVALIDATED)?;
        nodes.push((node, work));
        Ok(())
    }

    fn perform(&mut self, stream: &StreamRef, work: Work) -> Outcome {
        // Of a number that is read, what made it is the last work still; and a byte
        // that is copied is the answer itself, as PyTorch does for `all` of one.
        if !matches!(&work, Work::Copy(copy) if self.carries_truth(copy)) {
            let conjunction = matches!(work, Work::Kernel(kernel) if kernel.is_conjunction);
            self.streams.end_with(stream, conjunction);
        }
        match work {
            Work::Kernel(kernel) => {
                self.occupy(stream, kernel.duration);
                Ok(())
            }
            Work::Copy(copy) if copy.brings_number => {
                self.bring_number(&copy, self.streams.ends_with_conjunction(stream))
            }
            Work::Copy(copy) => self.copy(&copy),
            Work::Fill(fill) => self.fill(&fill),
            Work::Host(call) => {
                self.clock.skip_to(self.stream_end(stream));
                self.host_calls.push(call);
                Ok(())
            }
        }
    }

    fn new_graph(&mut self) -> u64 {
        let handle = self.new_handle();
        self.graphs.graphs.insert(handle, Nodes::new());
        handle
    }

    /// Begins to capture a created stream. The default ones cannot be captured
    /// here: the legacy one never can.
    fn begin_capture(
        &mut self,
        stream: u64,
        default: DefaultStream,
        graph: Option<u64>,
    ) -> Outcome {
        let stream = self.stream(stream, default)?;
        let StreamId::Created(origin) = stream.id else {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        };
        if stream.capture.is_some() {
            return Err(Status::ILLEGAL_STATE);
        }
        let graph = match graph {
            Some(graph) if self.graphs.graphs.contains_key(&graph) => graph,
            Some(_) => return Err(Status::INVALID_VALUE),
            None => self.new_graph(),
        };
        let id = CaptureId(self.new_handle());
        self.graphs.captures.insert(id, Capture { graph, origin });
        self.streams.created(origin)?.capture = Some(id);
        Ok(())
    }

    fn end_capture(&mut self, stream: u64, default: DefaultStream, out: &Out<u64>) -> Outcome {
        out.required()?;
        let stream = self.stream(stream, default)?;
        let id = stream.capture.ok_or(Status::ILLEGAL_STATE)?;
        let capture = self.graphs.captures.get(&id).ok_or(Status::ILLEGAL_STATE)?;
        if stream.id != StreamId::Created(capture.origin) {
            return Err(Status::STREAM_CAPTURE_UNMATCHED);
        }
        let graph = capture.graph;
        self.graphs.captures.remove(&id);
        self.streams.end_capture(id);
        out.set(graph)
    }

    /// Status, number and graph of a stream's capture. The nodes that the next
    /// one would depend on are not told: the order stands for them.
    fn capture_info(
        &self,
        stream: &StreamRef,
        (status, id, graph): (&Out<i32>, &Out<u64>, &Out<u64>),
        (dependencies, count): (&Out<u64>, &Out<usize>),
    ) -> Outcome {
        status.required()?;
        let capture = stream
            .capture
            .and_then(|id| Some((id, self.graphs.captures.get(&id)?)));
        if let Some((number, capture)) = capture {
            id.set_if_wanted(number.0);
            graph.set_if_wanted(capture.graph);
        }
        dependencies.set_if_wanted(0);
        count.set_if_wanted(0);
        status.set(if capture.is_some() { ACTIVE } else { 0 })
    }

    fn instantiate(&mut self, out: &Out<u64>, graph: u64) -> Outcome {
        out.required()?;
        let nodes = self.graphs.graphs.get(&graph);
        let nodes = nodes.ok_or(Status::INVALID_VALUE)?.clone();
        let handle = self.new_handle();
        self.graphs.executables.insert(handle, nodes);
        out.set(handle)
    }
}

entry! {
    /// Begins a capture; in which threads other calls are forbidden meanwhile
    /// (the mode) is not enforced.
    fn cuStreamBeginCapture_v2 | cuStreamBeginCapture_v2_ptsz(
        machine, default;
        stream: u64, _mode: i32
    ) {
        machine.begin_capture(stream, default, None)
    }

    /// Begins a capture that adds to a graph.
    fn cuStreamBeginCaptureToGraph | cuStreamBeginCaptureToGraph_ptsz(
        machine, default;
        stream: u64, graph: u64, _dependencies: u64, _edges: u64, _count: usize, _mode: i32
    ) {
        machine.begin_capture(stream, default, Some(graph))
    }

    /// Ends a capture: the graph.
    fn cuStreamEndCapture | cuStreamEndCapture_ptsz(machine, default; stream: u64, out: Out<u64>) {
        machine.end_capture(stream, default, &out)
    }

    /// Whether a stream is captured.
    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz(
        machine, default;
        stream: u64, out: Out<i32>
    ) {
        out.required()?;
        let captured = machine.stream(stream, default)?.capture.is_some();
        out.set(if captured { ACTIVE } else { 0 })
    }

    /// What a stream's capture is; all but the status may be NULL.
    fn cuStreamGetCaptureInfo_v2 | cuStreamGetCaptureInfo_v2_ptsz(
        machine, default;
        stream: u64,
        status: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        dependencies: Out<u64>,
        count: Out<usize>,
    ) {
        let stream = machine.stream(stream, default)?;
        machine.capture_info(&stream, (&status, &id, &graph), (&dependencies, &count))
    }

    /// The same, with data of the edges, of which there are none.
    fn cuStreamGetCaptureInfo_v3 | cuStreamGetCaptureInfo_v3_ptsz(
        machine, default;
        stream: u64,
        status: Out<i32>,
        id: Out<u64>,
        graph: Out<u64>,
        dependencies: Out<u64>,
        edges: Out<u64>,
        count: Out<usize>,
    ) {
        let stream = machine.stream(stream, default)?;
        edges.set_if_wanted(0);
        machine.capture_info(&stream, (&status, &id, &graph), (&dependencies, &count))
    }

    /// Swaps the thread's capture mode, which has no effect here.
    free fn cuThreadExchangeStreamCaptureMode(mode: Out<i32>) {
        std::thread_local! {
            static MODE: std::cell::Cell<i32> = const { std::cell::Cell::new(0) };
        }
        let wanted = mode.read()?;
        if !(0..=2).contains(&wanted) {
            return Err(Status::INVALID_VALUE);
        }
        mode.set(MODE.replace(wanted))
    }

    /// Creates an empty graph.
    fn cuGraphCreate(machine; out: Out<u64>, flags: u32) {
        out.required()?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        out.set(machine.new_graph())
    }

    /// Destroys a graph; executables made of it stay.
    fn cuGraphDestroy(machine; graph: u64) {
        machine.graphs.graphs.remove(&graph).map(drop).ok_or(Status::INVALID_VALUE)
    }

    /// The nodes: as many as there is room for, or with NULL their number.
    fn cuGraphGetNodes(machine; graph: u64, out: Out<u64>, count: Out<usize>) {
        let nodes = machine.graphs.graphs.get(&graph).ok_or(Status::INVALID_VALUE)?;
        if out.required().is_err() {
            return count.set(nodes.len());
        }
        let room = count.read()?;
        for (index, (node, _)) in nodes.iter().take(room).enumerate() {
            out.set_at(index, *node)?;
        }
        count.set(nodes.len().min(room))
    }

    /// Makes a graph executable.
    fn cuGraphInstantiateWithFlags(machine; out: Out<u64>, graph: u64, _flags: u64) {
        machine.instantiate(&out, graph)
    }

    /// The same; of the parameters only the result (at byte 24) is answered.
    fn cuGraphInstantiateWithParams | cuGraphInstantiateWithParams_ptsz(
        machine, _;
        out: Out<u64>, graph: u64, parameters: Out<[u8; 28]>
    ) {
        let mut answer = parameters.read()?;
        machine.instantiate(&out, graph)?;
        // `CUDA_GRAPH_INSTANTIATE_SUCCESS`.
        answer[24..].fill(0);
        parameters.set(answer)
    }

    /// Destroys an executable graph.
    fn cuGraphExecDestroy(machine; executable: u64) {
        machine.graphs.executables.remove(&executable).map(drop).ok_or(Status::INVALID_VALUE)
    }

    /// There is nothing to upload.
    fn cuGraphUpload | cuGraphUpload_ptsz(machine, default; executable: u64, stream: u64) {
        machine.stream(stream, default)?;
        let known = machine.graphs.executables.contains_key(&executable);
        if known { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// Does all work of a graph. Within a capture it is a part of the new one.
    fn cuGraphLaunch | cuGraphLaunch_ptsz(machine, default; executable: u64, stream: u64) {
        let stream = machine.stream(stream, default)?;
        let nodes = machine.graphs.executables.get(&executable);
        for (_, work) in nodes.ok_or(Status::INVALID_VALUE)?.clone() {
            machine.submit(&stream, work)?;
        }
        Ok(())
    }

    /// Graphs hold no memory of their own here.
    fn cuDeviceGraphMemTrim(machine; device: i32) {
        machine.device(device).map(drop)
    }

    /// Bytes that graphs use or reserve, or did at most: none.
    fn cuDeviceGetGraphMemAttribute(machine; device: i32, attribute: i32, out: Out<c_void>) {
        out.required()?;
        machine.device(device)?;
        if !(0..=3).contains(&attribute) {
            return Err(Status::INVALID_VALUE);
        }
        out.typed::<u64>().set(0)
    }

    /// Sets a high mark back, which is zero.
    fn cuDeviceSetGraphMemAttribute(machine; device: i32, attribute: i32, value: In<c_void>) {
        machine.device(device)?;
        let resets = matches!(attribute, 1 | 3) && value.typed::<u64>().read()? == 0;
        if resets { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }
}
