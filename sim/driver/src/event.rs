//! Events: moments of the virtual clock, or marks within a capture.

use std::collections::BTreeMap;

use crate::abi::{Out, Outcome, Status};
use crate::clock::Moment;
use crate::entry::entry;
use crate::graph::CaptureId;
use crate::ipc::IpcHandle;
use crate::ledger::DeviceId;
use crate::machine::Machine;
use crate::stream::{DefaultStream, StreamId};

/// `BLOCKING_SYNC`, `DISABLE_TIMING` and `INTERPROCESS`.
const FLAGS: u32 = 7;
/// `CU_EVENT_DISABLE_TIMING`.
const WITHOUT_TIME: u32 = 2;
/// `CU_EVENT_INTERPROCESS`.
const INTERPROCESS: u32 = 4;

/// What an event was recorded in.
#[derive(Clone, Copy, Debug)]
enum Record {
    Never,
    /// Done at that moment.
    At(Moment),
    /// Part of a graph, and never done by itself.
    In(CaptureId),
}

/// A created event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) context: u64,
    pub(crate) device: DeviceId,
    flags: u32,
    record: Record,
}

/// All events by handle.
#[derive(Default)]
pub(crate) struct Events {
    all: BTreeMap<u64, Event>,
}

impl Events {
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Event)> {
        self.all.iter().map(|(handle, event)| (*handle, event))
    }

    /// Ends what belongs to a context.
    pub(crate) fn end_context(&mut self, context: u64) {
        self.all.retain(|_, event| event.context != context);
    }

    fn get(&self, handle: u64) -> Outcome<Event> {
        self.all.get(&handle).copied().ok_or(Status::INVALID_HANDLE)
    }

    /// When the event is done; one that was never recorded is.
    fn end(&self, handle: u64) -> Outcome<Moment> {
        match self.get(handle)?.record {
            Record::Never => Ok(Moment::default()),
            Record::At(moment) => Ok(moment),
            Record::In(_) => Err(Status::CAPTURED_EVENT),
        }
    }
}

impl Machine {
    fn create_event(&mut self, out: &Out<u64>, flags: u32) -> Outcome {
        out.required()?;
        let current = self.contexts.current()?;
        // An event of several processes has no time.
        let shared_with_time = flags & INTERPROCESS != 0 && flags & WITHOUT_TIME == 0;
        if flags & !FLAGS != 0 || shared_with_time {
            return Err(Status::INVALID_VALUE);
        }
        let handle = self.new_handle();
        let event = Event {
            context: current.handle,
            device: current.device,
            flags,
            record: Record::Never,
        };
        self.events.all.insert(handle, event);
        out.set(handle)
    }

    fn record(&mut self, handle: u64, stream: u64, default: DefaultStream) -> Outcome {
        let stream = self.stream(stream, default)?;
        let end = self.stream_end(&stream);
        let event = self.events.all.get_mut(&handle);
        let event = event.ok_or(Status::INVALID_HANDLE)?;
        if event.device != stream.device {
            return Err(Status::INVALID_HANDLE);
        }
        event.record = match stream.capture {
            Some(capture) => Record::In(capture),
            None => Record::At(end),
        };
        Ok(())
    }

    /// What a stream is given from now on comes after the event. A stream that
    /// waits for an event of a capture joins that capture.
    fn wait_for_event(&mut self, stream: u64, event: u64, default: DefaultStream) -> Outcome {
        let stream = self.stream(stream, default)?;
        match (self.events.get(event)?.record, stream.capture) {
            (Record::In(capture), Some(own)) if capture == own => {}
            (Record::In(capture), None) if self.graphs.capturing(capture) => {
                let StreamId::Created(handle) = stream.id else {
                    return Err(Status::STREAM_CAPTURE_IMPLICIT);
                };
                self.streams.created(handle)?.capture = Some(capture);
            }
            (_, Some(_)) => return Err(Status::STREAM_CAPTURE_ISOLATION),
            (Record::At(moment), None) => self.hold_until(&stream, moment),
            (Record::Never | Record::In(_), None) => {}
        }
        Ok(())
    }

    /// Milliseconds between two recorded events with time.
    fn elapsed(&self, out: &Out<f32>, start: u64, end: u64) -> Outcome {
        out.required()?;
        let time = |handle| {
            let event = self.events.get(handle)?;
            match event.record {
                Record::At(moment) if event.flags & WITHOUT_TIME == 0 => Ok(moment),
                _ => Err(Status::INVALID_HANDLE),
            }
        };
        let (start, end) = (time(start)?, time(end)?);
        if start.max(end) > self.clock.now() {
            return Err(Status::NOT_READY);
        }
        out.set(end.milliseconds_since(start))
    }
}

entry! {
    /// Creates an event.
    fn cuEventCreate(machine; out: Out<u64>, flags: u32) {
        machine.create_event(&out, flags)
    }

    /// Destroys an event.
    fn cuEventDestroy_v2(machine; event: u64) {
        machine.events.all.remove(&event).map(drop).ok_or(Status::INVALID_HANDLE)
    }

    /// Records an event, done when what the stream has is.
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

    /// Makes a stream wait for an event.
    fn cuStreamWaitEvent | cuStreamWaitEvent_ptsz(
        machine, default;
        stream: u64, event: u64, _flags: u32
    ) {
        machine.wait_for_event(stream, event, default)
    }

    /// Whether an event is done.
    fn cuEventQuery(machine; event: u64) {
        if machine.events.end(event)? > machine.clock.now() {
            return Err(Status::NOT_READY);
        }
        Ok(())
    }

    /// Waits for an event, and lets pools shrink.
    fn cuEventSynchronize(machine; event: u64) {
        let end = machine.events.end(event)?;
        let device = machine.events.get(event)?.device;
        machine.clock.skip_to(end);
        machine.trim_pools_at_synchronisation(device);
        Ok(())
    }

    /// Milliseconds between two events that are done.
    fn cuEventElapsedTime(machine; out: Out<f32>, start: u64, end: u64) {
        machine.elapsed(&out, start, end)
    }

    /// The newer name of the same.
    fn cuEventElapsedTime_v2(machine; out: Out<f32>, start: u64, end: u64) {
        machine.elapsed(&out, start, end)
    }

    /// Names an event to other processes.
    fn cuIpcGetEventHandle(machine; out: Out<IpcHandle>, event: u64) {
        out.required()?;
        if machine.events.get(event)?.flags & INTERPROCESS == 0 {
            return Err(Status::INVALID_HANDLE);
        }
        out.set(IpcHandle::of_event())
    }

    /// An event that another process named: done, since clocks of processes
    /// know nothing of each other.
    fn cuIpcOpenEventHandle(machine; out: Out<u64>, handle: IpcHandle) {
        out.required()?;
        if !handle.is_event() {
            return Err(Status::INVALID_VALUE);
        }
        machine.create_event(&out, WITHOUT_TIME | INTERPROCESS)
    }
}
