//! Streams and events. The device does its work at once, so every stream is
//! always idle and every event is done as soon as it is recorded.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::abi::{Out, Outcome, Status};
use crate::entry::entry;
use crate::ledger::DeviceId;
use crate::machine::Machine;

/// `CU_STREAM_NON_BLOCKING`, the one flag of a stream.
const STREAM_FLAGS: u32 = 1;
/// `BLOCKING_SYNC`, `DISABLE_TIMING` and `INTERPROCESS`.
const EVENT_FLAGS: u32 = 7;
/// `CU_EVENT_DISABLE_TIMING`.
const EVENT_WITHOUT_TIME: u32 = 2;

/// What the null stream means to a function: the two variants differ in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultStream {
    Legacy,
    PerThread,
}

/// Which stream a call named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamId {
    Legacy,
    PerThread,
    Created(u64),
}

/// A stream that a call may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamRef {
    pub(crate) id: StreamId,
    pub(crate) device: DeviceId,
    context: u64,
    flags: u32,
    priority: i32,
}

/// A created stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) context: u64,
    pub(crate) device: DeviceId,
    flags: u32,
    priority: i32,
}

/// A created event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) context: u64,
    pub(crate) device: DeviceId,
    flags: u32,
    recorded: Option<Instant>,
}

/// All streams and events by handle.
#[derive(Default)]
pub(crate) struct Streams {
    streams: BTreeMap<u64, Stream>,
    events: BTreeMap<u64, Event>,
}

impl Streams {
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Stream)> {
        self.streams
            .iter()
            .map(|(handle, stream)| (*handle, stream))
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = (u64, &Event)> {
        self.events.iter().map(|(handle, event)| (*handle, event))
    }

    /// Ends what belongs to a context.
    pub(crate) fn end_context(&mut self, context: u64) {
        self.streams.retain(|_, stream| stream.context != context);
        self.events.retain(|_, event| event.context != context);
    }

    fn event(&mut self, handle: u64) -> Outcome<&mut Event> {
        self.events.get_mut(&handle).ok_or(Status::INVALID_HANDLE)
    }
}

impl Machine {
    /// The stream of a handle: NULL is the variant's own, 1 and 2 are the
    /// legacy and the thread's one of the current context.
    pub(crate) fn stream(&self, handle: u64, default: DefaultStream) -> Outcome<StreamRef> {
        let id = match (handle, default) {
            (0, DefaultStream::Legacy) | (1, _) => StreamId::Legacy,
            (0, DefaultStream::PerThread) | (2, _) => StreamId::PerThread,
            _ => {
                let stream = self
                    .streams
                    .streams
                    .get(&handle)
                    .ok_or(Status::INVALID_HANDLE)?;
                let Stream {
                    context,
                    device,
                    flags,
                    priority,
                } = *stream;
                let id = StreamId::Created(handle);
                return Ok(StreamRef {
                    id,
                    device,
                    context,
                    flags,
                    priority,
                });
            }
        };
        let current = self.contexts.current()?;
        let (device, context) = (current.device, current.handle);
        Ok(StreamRef {
            id,
            device,
            context,
            flags: 0,
            priority: 0,
        })
    }

    fn create_stream(&mut self, out: &Out<u64>, flags: u32, priority: i32) -> Outcome {
        out.required()?;
        let current = self.contexts.current()?;
        if flags & !STREAM_FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let handle = self.new_handle();
        let (context, device) = (current.handle, current.device);
        self.streams.streams.insert(
            handle,
            Stream {
                context,
                device,
                flags,
                priority,
            },
        );
        out.set(handle)
    }

    fn record(&mut self, event: u64, stream: u64, default: DefaultStream) -> Outcome {
        let stream = self.stream(stream, default)?;
        let event = self.streams.event(event)?;
        if event.device != stream.device {
            return Err(Status::INVALID_HANDLE);
        }
        event.recorded = Some(Instant::now());
        Ok(())
    }

    /// Milliseconds between two recorded events with time.
    fn elapsed(&mut self, out: &Out<f32>, start: u64, end: u64) -> Outcome {
        out.required()?;
        let mut time = |handle| {
            let event = self.streams.event(handle)?;
            match event.recorded {
                Some(time) if event.flags & EVENT_WITHOUT_TIME == 0 => Ok(time),
                _ => Err(Status::INVALID_HANDLE),
            }
        };
        let (start, end) = (time(start)?, time(end)?);
        let milliseconds = if end >= start {
            (end - start).as_secs_f32() * 1e3
        } else {
            -(start - end).as_secs_f32() * 1e3
        };
        out.set(milliseconds)
    }
}

entry! {
    /// Creates a stream.
    fn cuStreamCreate(machine; out: Out<u64>, flags: u32) {
        machine.create_stream(&out, flags, 0)
    }

    /// Creates a stream with a priority.
    fn cuStreamCreateWithPriority(machine; out: Out<u64>, flags: u32, priority: i32) {
        machine.create_stream(&out, flags, priority.clamp(-5, 0))
    }

    /// Destroys a created stream.
    fn cuStreamDestroy_v2(machine; stream: u64) {
        machine.streams.streams.remove(&stream).map(drop).ok_or(Status::INVALID_HANDLE)
    }

    /// Waits for a stream, which is idle, and lets pools shrink.
    fn cuStreamSynchronize | cuStreamSynchronize_ptsz(machine, default; stream: u64) {
        let stream = machine.stream(stream, default)?;
        machine.trim_pools_at_synchronisation(stream.device);
        Ok(())
    }

    /// Whether a stream is idle: it is.
    fn cuStreamQuery | cuStreamQuery_ptsz(machine, default; stream: u64) {
        machine.stream(stream, default).map(drop)
    }

    /// Makes a stream wait for an event, which is done.
    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz(
        machine, default;
        stream: u64, event: u64, _flags: u32
    ) {
        machine.stream(stream, default)?;
        machine.streams.event(event).map(drop)
    }

    /// Whether a stream captures a graph: never, since no capture can begin.
    fn cuStreamIsCapturing | cuStreamIsCapturing_ptsz(
        machine, default;
        stream: u64, out: Out<i32>
    ) {
        out.required()?;
        machine.stream(stream, default)?;
        out.set(0)
    }

    /// A stream's flags.
    fn cuStreamGetFlags | cuStreamGetFlags_ptsz(machine, default; stream: u64, out: Out<u32>) {
        out.required()?;
        out.set(machine.stream(stream, default)?.flags)
    }

    /// A stream's priority.
    fn cuStreamGetPriority | cuStreamGetPriority_ptsz(
        machine, default;
        stream: u64, out: Out<i32>
    ) {
        out.required()?;
        out.set(machine.stream(stream, default)?.priority)
    }

    /// A stream's context.
    fn cuStreamGetCtx | cuStreamGetCtx_ptsz(machine, default; stream: u64, out: Out<u64>) {
        out.required()?;
        out.set(machine.stream(stream, default)?.context)
    }

    /// A number that no other stream of this process ever has.
    fn cuStreamGetId | cuStreamGetId_ptsz(machine, default; stream: u64, out: Out<u64>) {
        out.required()?;
        let stream = machine.stream(stream, default)?;
        out.set(match stream.id {
            // The two without a handle take the numbers next to their context's.
            StreamId::Legacy => stream.context + 1,
            StreamId::PerThread => stream.context + 2,
            StreamId::Created(handle) => handle,
        })
    }

    /// Creates an event.
    fn cuEventCreate(machine; out: Out<u64>, flags: u32) {
        out.required()?;
        let current = machine.contexts.current()?;
        if flags & !EVENT_FLAGS != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let handle = machine.new_handle();
        let (context, device) = (current.handle, current.device);
        let event = Event { context, device, flags, recorded: None };
        machine.streams.events.insert(handle, event);
        out.set(handle)
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(machine; event: u64) {
        machine.streams.events.remove(&event).map(drop).ok_or(Status::INVALID_HANDLE)
    }

    /// Records an event, which is done at once.
    fn cuEventRecord | cuEventRecord_ptsz(machine, default; event: u64, stream: u64) {
        machine.record(event, stream, default)
    }

    /// Records an event; the flags concern captures alone.
    fn cuEventRecordWithFlags | cuEventRecordWithFlags_ptsz(
        machine, default;
        event: u64, stream: u64, _flags: u32
    ) {
        machine.record(event, stream, default)
    }

    /// Whether an event is done: it is.
    fn cuEventQuery(machine; event: u64) {
        machine.streams.event(event).map(drop)
    }

    /// Waits for an event, which is done, and lets pools shrink.
    fn cuEventSynchronize(machine; event: u64) {
        let device = machine.streams.event(event)?.device;
        machine.trim_pools_at_synchronisation(device);
        Ok(())
    }

    /// Milliseconds between two events, by the host's clock.
    fn cuEventElapsedTime(machine; out: Out<f32>, start: u64, end: u64) {
        machine.elapsed(&out, start, end)
    }

    /// The newer name of the same.
    fn cuEventElapsedTime_v2(machine; out: Out<f32>, start: u64, end: u64) {
        machine.elapsed(&out, start, end)
    }
}
