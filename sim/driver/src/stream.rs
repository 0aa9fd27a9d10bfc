//! Streams: what each is busy with, by the virtual clock, and whether it is
//! captured.
//!
//! Work has its effect at once, in the order of the calls, which every stream
//! allows. What a stream has is the moment at which all that it was given is
//! done; a kernel without a stated duration ends as soon as it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::abi::{Out, Outcome, Status};
use crate::clock::Moment;
use crate::entry::entry;
use crate::graph::CaptureId;
use crate::ledger::DeviceId;
use crate::machine::Machine;

/// `CU_STREAM_NON_BLOCKING`, the one flag of a stream: it does not wait for the
/// legacy stream, nor that for it.
const NON_BLOCKING: u32 = 1;

/// What the null stream means to a function: the two variants differ in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultStream {
    Legacy,
    PerThread,
}

/// Which stream a call named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    pub(crate) capture: Option<CaptureId>,
    context: u64,
    flags: u32,
    priority: i32,
}

/// A created stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    pub(crate) context: u64,
    pub(crate) device: DeviceId,
    pub(crate) capture: Option<CaptureId>,
    flags: u32,
    priority: i32,
    busy_until: Moment,
}

/// All created streams by handle, and the two of each context that have none.
#[derive(Default)]
pub(crate) struct Streams {
    created: BTreeMap<u64, Stream>,
    defaults: BTreeMap<(u64, StreamId), Moment>,
    /// Streams, by context, whose last work was a conjunction.
    conjunctions: BTreeSet<(u64, StreamId)>,
}

impl Streams {
    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &Stream)> {
        self.created
            .iter()
            .map(|(handle, stream)| (*handle, stream))
    }

    /// Ends what belongs to a context.
    pub(crate) fn end_context(&mut self, context: u64) {
        self.created.retain(|_, stream| stream.context != context);
        self.defaults.retain(|(owner, _), _| *owner != context);
        self.conjunctions.retain(|(owner, _)| *owner != context);
    }

    /// A created stream; the others cannot be captured.
    pub(crate) fn created(&mut self, handle: u64) -> Outcome<&mut Stream> {
        self.created.get_mut(&handle).ok_or(Status::INVALID_HANDLE)
    }

    fn remove(&mut self, handle: u64) -> Outcome {
        let stream = self.created.remove(&handle).ok_or(Status::INVALID_HANDLE)?;
        self.conjunctions
            .remove(&(stream.context, StreamId::Created(handle)));
        Ok(())
    }

    /// Makes every stream of a capture an ordinary one again.
    pub(crate) fn end_capture(&mut self, capture: CaptureId) {
        for stream in self.created.values_mut() {
            if stream.capture == Some(capture) {
                stream.capture = None;
            }
        }
    }

    /// Remembers of the last work of a stream whether it was a kernel that says
    /// of numbers whether all are true.
    pub(crate) fn end_with(&mut self, stream: &StreamRef, conjunction: bool) {
        let key = (stream.context, stream.id);
        if conjunction {
            self.conjunctions.insert(key);
        } else {
            self.conjunctions.remove(&key);
        }
    }

    /// The same of work that is none, on the legacy stream, without naming it.
    pub(crate) fn end_legacy(&mut self, context: u64) {
        self.conjunctions.remove(&(context, StreamId::Legacy));
    }

    /// Whether the last work of a stream was such a kernel.
    pub(crate) fn ends_with_conjunction(&self, stream: &StreamRef) -> bool {
        self.conjunctions.contains(&(stream.context, stream.id))
    }

    fn own_end(&self, stream: &StreamRef) -> Moment {
        match stream.id {
            StreamId::Created(handle) => self.created.get(&handle).map(|s| s.busy_until),
            id => self.defaults.get(&(stream.context, id)).copied(),
        }
        .unwrap_or_default()
    }

    /// When all is done that the next work of a stream must wait for: its own,
    /// and between the legacy stream and the blocking ones each other's.
    fn end(&self, stream: &StreamRef) -> Moment {
        let own = self.own_end(stream);
        let of_default = |id| self.defaults.get(&(stream.context, id)).copied();
        match stream.id {
            StreamId::Legacy => self
                .created
                .values()
                .filter(|other| other.context == stream.context && other.flags & NON_BLOCKING == 0)
                .map(|other| other.busy_until)
                .chain(of_default(StreamId::PerThread))
                .fold(own, Moment::max),
            _ if stream.flags & NON_BLOCKING != 0 => own,
            _ => own.max(of_default(StreamId::Legacy).unwrap_or_default()),
        }
    }

    fn set_end(&mut self, stream: &StreamRef, end: Moment) {
        match stream.id {
            StreamId::Created(handle) => {
                if let Some(stream) = self.created.get_mut(&handle) {
                    stream.busy_until = end;
                }
            }
            id => {
                self.defaults.insert((stream.context, id), end);
            }
        }
    }

    /// When a context's streams are all done.
    pub(crate) fn context_end(&self, context: u64) -> Moment {
        let created = self.created.values().filter(|s| s.context == context);
        let defaults = self.defaults.iter().filter(|(key, _)| key.0 == context);
        created
            .map(|stream| stream.busy_until)
            .chain(defaults.map(|(_, end)| *end))
            .fold(Moment::default(), Moment::max)
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
                let created = self.streams.created.get(&handle);
                let stream = created.ok_or(Status::INVALID_HANDLE)?;
                return Ok(StreamRef {
                    id: StreamId::Created(handle),
                    device: stream.device,
                    capture: stream.capture,
                    context: stream.context,
                    flags: stream.flags,
                    priority: stream.priority,
                });
            }
        };
        let current = self.contexts.current()?;
        Ok(StreamRef {
            id,
            device: current.device,
            capture: None,
            context: current.handle,
            flags: 0,
            priority: 0,
        })
    }

    /// The moment at which what a stream was given up to now is done.
    pub(crate) fn stream_end(&self, stream: &StreamRef) -> Moment {
        self.streams.end(stream).max(self.clock.now())
    }

    /// Lets a stream work for so long, after what it must wait for.
    pub(crate) fn occupy(&mut self, stream: &StreamRef, duration: Duration) {
        if !duration.is_zero() {
            let end = self.stream_end(stream).after(duration);
            self.streams.set_end(stream, end);
        }
    }

    /// Lets a stream do nothing before `moment`.
    pub(crate) fn hold_until(&mut self, stream: &StreamRef, moment: Moment) {
        if moment > self.streams.own_end(stream) {
            self.streams.set_end(stream, moment);
        }
    }

    /// Waits for a stream, and lets pools shrink; a captured stream has no end
    /// that could be waited for.
    fn wait_for_stream(&mut self, stream: &StreamRef) -> Outcome {
        if stream.capture.is_some() {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        self.clock.skip_to(self.streams.end(stream));
        self.trim_pools_at_synchronisation(stream.device);
        Ok(())
    }

    fn create_stream(&mut self, out: &Out<u64>, flags: u32, priority: i32) -> Outcome {
        out.required()?;
        let current = self.contexts.current()?;
        if flags & !NON_BLOCKING != 0 {
            return Err(Status::INVALID_VALUE);
        }
        let handle = self.new_handle();
        let stream = Stream {
            context: current.handle,
            device: current.device,
            capture: None,
            flags,
            priority,
            busy_until: Moment::default(),
        };
        self.streams.created.insert(handle, stream);
        out.set(handle)
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

    /// Destroys a created stream; what it was given is done all the same.
    fn cuStreamDestroy_v2(machine; stream: u64) {
        machine.streams.remove(stream)
    }

    /// Waits for a stream, and lets pools shrink.
    fn cuStreamSynchronize | cuStreamSynchronize_ptsz(machine, default; stream: u64) {
        let stream = machine.stream(stream, default)?;
        machine.wait_for_stream(&stream)
    }

    /// Whether a stream is idle.
    fn cuStreamQuery | cuStreamQuery_ptsz(machine, default; stream: u64) {
        let stream = machine.stream(stream, default)?;
        if stream.capture.is_some() {
            return Err(Status::STREAM_CAPTURE_UNSUPPORTED);
        }
        if machine.streams.end(&stream) > machine.clock.now() {
            return Err(Status::NOT_READY);
        }
        Ok(())
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

    /// A stream's device.
    fn cuStreamGetDevice | cuStreamGetDevice_ptsz(machine, default; stream: u64, out: Out<i32>) {
        out.required()?;
        let device = machine.stream(stream, default)?.device;
        out.set(machine.visible().ordinal_or_invalid(device))
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
}
