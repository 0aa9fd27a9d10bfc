//! Event lists for tests, in a small language: `alloc(0x1000, 4 * MIB).at("train.py:31 train_step")`.
//!
//! A [`Trace`] numbers, times and interns what it is given, keeps torch's totals as torch would, and feeds a [`Process`]
//! through the same doors as a real stream. All times are a millisecond apart unless [`Step::after_ms`] says otherwise.

use std::collections::HashMap;

use gpumem_wire::define::{
    Anchor, CodeDefinition, DeviceDefinition, ModuleDefinition, ProcessDefinition, PythonStatus,
    StackDefinition, SymbolDefinition, SymbolFunction,
};
use gpumem_wire::{
    CodeId, Definition, DeviceOrdinal, Event, Flags, Frame, Kind, ModuleId, Seq, StackId, ThreadId,
};

use crate::model::process::Process;

/// 1024 bytes.
pub const KIB: u64 = 1 << 10;
/// 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// 1024 MiB.
pub const GIB: u64 = 1 << 30;
/// The time of tick 0, in nanoseconds since the epoch. A tick is a nanosecond.
pub const EPOCH_NS: u64 = 1_700_000_000_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TestFrame {
    Python {
        file: String,
        line: u32,
        function: String,
    },
    Native {
        module: String,
        function: String,
        file: String,
        line: u32,
    },
}

/// One event to come, and where it comes from.
#[derive(Clone, Debug)]
pub struct Step {
    kind: Kind,
    words: [u64; 4],
    frames: Vec<TestFrame>,
    thread: u32,
    device: i16,
    flags: Flags,
    after_ns: u64,
    mark: Option<String>,
    undoes: bool,
}

fn step(kind: Kind, words: [u64; 4]) -> Step {
    Step {
        kind,
        words,
        frames: Vec::new(),
        thread: 1,
        device: 0,
        flags: Flags::default(),
        after_ns: 1_000_000,
        mark: None,
        undoes: false,
    }
}

/// The one context of a trace's allocations.
pub const CONTEXT: u64 = 0xc0de;

/// `cuMemAlloc`.
pub fn alloc(address: u64, bytes: u64) -> Step {
    step(Kind::DeviceAlloc, [address, bytes, CONTEXT, bytes])
}

/// `cuMemAllocManaged`.
pub fn managed(address: u64, bytes: u64) -> Step {
    step(Kind::ManagedAlloc, [address, bytes, CONTEXT, 1])
}

/// `cuMemFree` or `cuMemFreeAsync`.
pub fn free(address: u64) -> Step {
    step(Kind::Free, [address, 0, 0, 0])
}

/// `cuMemAllocAsync`.
pub fn pool_alloc(address: u64, bytes: u64) -> Step {
    step(Kind::PoolAlloc, [address, bytes, 0, 0])
}

/// `cuMemCreate`.
pub fn physical(handle: u64, bytes: u64) -> Step {
    step(Kind::PhysicalCreate, [handle, bytes, 1, 0])
}

/// `cuMemRelease`.
pub fn release(handle: u64) -> Step {
    step(Kind::PhysicalRelease, [handle, 0, 0, 0])
}

/// `cuMemMap`.
pub fn map(address: u64, bytes: u64, handle: u64) -> Step {
    step(Kind::Map, [address, bytes, handle, 0])
}

/// `cuMemUnmap`.
pub fn unmap(address: u64, bytes: u64) -> Step {
    step(Kind::Unmap, [address, bytes, 0, 0])
}

/// A torch block handed out. Torch's totals are filled in by the trace.
pub fn block(address: u64, bytes: u64) -> Step {
    step(Kind::BlockAlloc, [address, bytes, 0, 0])
}

/// A torch block taken back.
pub fn block_free(address: u64) -> Step {
    step(Kind::BlockFree, [address, 0, 0, 0])
}

/// A segment as torch's allocator takes it: [`alloc`] with the stack of libc10_cuda under the runtime.
pub fn torch_segment(address: u64, bytes: u64) -> Step {
    alloc(address, bytes)
        .native("libcudart.so.12", "cudaMalloc", "", 0)
        .native("libc10_cuda.so", "cudaMallocMaybeCapturing", "", 0)
}

/// A piece of an expandable segment as torch's allocator maps it: [`map`] with the stack of libc10_cuda.
pub fn torch_map(address: u64, bytes: u64, handle: u64) -> Step {
    map(address, bytes, handle).native("libc10_cuda.so", "ExpandableSegment::map", "", 0)
}

/// Physical memory as torch's allocator makes it for an expandable segment.
pub fn torch_physical(handle: u64, bytes: u64) -> Step {
    physical(handle, bytes).native("libc10_cuda.so", "ExpandableSegment::map", "", 0)
}

/// The call before on the same thread failed.
pub fn undone() -> Step {
    Step {
        undoes: true,
        ..step(Kind::Undone, [0, 1, 0, 0])
    }
}

/// A context is made.
pub fn context() -> Step {
    step(Kind::ContextCreate, [CONTEXT, 0, 0, 0])
}

/// The context is destroyed.
pub fn context_destroy() -> Step {
    step(Kind::ContextDestroy, [CONTEXT, 0, 0, 0])
}

/// A phase mark.
pub fn mark(name: &str) -> Step {
    Step {
        mark: Some(name.into()),
        ..step(Kind::Mark, [0; 4])
    }
}

fn user_scope(file: &str, line: u32, function: &str) -> Step {
    step(Kind::UserScope, [0; 4])
        .at("/usr/lib/python3/site-packages/torch/_ops.py:1 OpOverload.__call__")
        .at("/usr/lib/python3/site-packages/torch/autograd/profiler.py:2 record_function.__enter__")
        .at(&format!(
            "/usr/lib/python3/site-packages/{file}:{line} {function}"
        ))
        .at("train.py:1 <module>")
}

/// torch enters an optimizer's step.
pub fn optimizer_step() -> Step {
    user_scope(
        "torch/optim/optimizer.py",
        487,
        "Optimizer.profile_hook_step.<locals>.wrapper",
    )
}

/// torch enters zero_grad.
pub fn zero_grad() -> Step {
    user_scope("torch/optim/optimizer.py", 940, "Optimizer.zero_grad")
}

/// torch's DataLoader hands out a batch.
pub fn dataloader_next() -> Step {
    user_scope(
        "torch/utils/data/dataloader.py",
        700,
        "_BaseDataLoaderIter.__next__",
    )
}

/// A backward pass begins.
pub fn backward_begin() -> Step {
    step(Kind::BackwardBegin, [0; 4])
}

/// The last begun backward pass ends.
pub fn backward_end() -> Step {
    step(Kind::BackwardEnd, [0; 4])
}

/// The interpreter begins to finalise.
pub fn finalising() -> Step {
    step(Kind::Finalising, [0; 4])
}

/// The process runs its exit handlers.
pub fn exit_handler() -> Step {
    step(Kind::ExitHandler, [0; 4])
}

/// Events were lost.
pub fn gap(allocations: u64, frees: u64) -> Step {
    step(Kind::Gap, [allocations, frees, 0, 0])
}

/// An event of any kind.
pub fn event(kind: Kind, words: [u64; 4]) -> Step {
    step(kind, words)
}

impl Step {
    /// Adds a Python frame, outside those added before: `"train.py:31 train_step"`, the function `f` if none is given.
    pub fn at(mut self, place: &str) -> Self {
        let (spot, function) = place.split_once(' ').unwrap_or((place, "f"));
        let (file, line) = spot.rsplit_once(':').unwrap_or((spot, "0"));
        self.frames.push(TestFrame::Python {
            file: file.into(),
            line: line.parse().unwrap_or(0),
            function: function.into(),
        });
        self
    }

    /// Adds a native frame, outside those added before. An empty file: no source line is known.
    pub fn native(mut self, module: &str, function: &str, file: &str, line: u32) -> Self {
        self.frames.push(TestFrame::Native {
            module: module.into(),
            function: function.into(),
            file: file.into(),
            line,
        });
        self
    }

    /// On another thread than 1.
    pub fn thread(mut self, thread: u32) -> Self {
        self.thread = thread;
        self
    }

    /// On another device than 0.
    pub fn device(mut self, device: i16) -> Self {
        self.device = device;
        self
    }

    /// With flags.
    pub fn flags(mut self, flags: Flags) -> Self {
        self.flags = flags;
        self
    }

    /// So much later than the event before.
    pub fn after_ms(mut self, milliseconds: u64) -> Self {
        self.after_ns = milliseconds * 1_000_000;
        self
    }
}

/// A growing list of definitions and events of one process.
#[derive(Default)]
pub struct Trace {
    definitions: Vec<Definition>,
    events: Vec<Event>,
    now_ns: u64,
    modules: HashMap<String, ModuleId>,
    codes: HashMap<(String, String), CodeId>,
    natives: HashMap<TestFrame, Frame>,
    stacks: HashMap<Vec<TestFrame>, StackId>,
    devices: Vec<i16>,
    marks: HashMap<String, u32>,
    blocks: HashMap<u64, (u64, i16)>,
    block_bytes: HashMap<i16, u64>,
    segments: HashMap<u64, (u64, i16)>,
    reserved_bytes: HashMap<i16, u64>,
    backward: Vec<u64>,
}

impl Trace {
    /// An empty trace of a Python process.
    pub fn new() -> Self {
        let mut trace = Self::default();
        trace
            .definitions
            .push(Definition::Process(ProcessDefinition {
                host: "host".into(),
                pid: 4711,
                nonce: 1,
                command: vec!["python".into(), "train.py".into()],
                started_ns: EPOCH_NS,
                ..ProcessDefinition::default()
            }));
        trace
            .definitions
            .push(Definition::Python(PythonStatus::Supported {
                major: 3,
                minor: 12,
            }));
        trace
    }

    /// Adds one event.
    pub fn push(&mut self, step: Step) -> &mut Self {
        self.define_device(step.device);
        let stack = self.stack(&step.frames);
        let seq = self.events.len() as u64 + 1;
        self.now_ns += step.after_ns;
        let mut words = step.words;
        match step.kind {
            Kind::BlockAlloc => {
                *self.block_bytes.entry(step.device).or_default() += words[1];
                let former = self.blocks.insert(words[0], (words[1], step.device));
                if let Some((bytes, device)) = former {
                    *self.block_bytes.entry(device).or_default() -= bytes;
                }
            }
            Kind::BlockFree => {
                if let Some((bytes, device)) = self.blocks.remove(&words[0]) {
                    *self.block_bytes.entry(device).or_default() -= bytes;
                    words[1] = bytes;
                }
            }
            Kind::DeviceAlloc | Kind::Map if is_torch(&step.frames) => {
                *self.reserved_bytes.entry(step.device).or_default() += words[1];
                self.segments.insert(words[0], (words[1], step.device));
            }
            Kind::Free => {
                if let Some((bytes, device)) = self.segments.remove(&words[0]) {
                    *self.reserved_bytes.entry(device).or_default() -= bytes;
                }
            }
            Kind::Unmap => {
                let range = words[0]..words[0].saturating_add(words[1]);
                let inside = self
                    .segments
                    .extract_if(|address, _| range.contains(address));
                for (_, (bytes, device)) in inside {
                    *self.reserved_bytes.entry(device).or_default() -= bytes;
                }
            }
            Kind::BackwardBegin => self.backward.push(seq),
            Kind::BackwardEnd => words[0] = self.backward.pop().unwrap_or(0),
            Kind::Mark => words[0] = u64::from(self.mark(step.mark.as_deref().unwrap_or(""))),
            _ => {}
        }
        if matches!(step.kind, Kind::BlockAlloc | Kind::BlockFree) {
            words[2] = self.block_bytes.get(&step.device).copied().unwrap_or(0);
            words[3] = self.reserved_bytes.get(&step.device).copied().unwrap_or(0);
        }
        if step.undoes {
            words[0] = self
                .events
                .iter()
                .rev()
                .find(|event| event.thread.0 == step.thread)
                .map_or(0, |event| event.seq.0);
        }
        self.events.push(Event {
            seq: Seq(seq),
            time: self.now_ns,
            thread: ThreadId(step.thread),
            stack,
            kind: step.kind as u16,
            device: DeviceOrdinal(step.device),
            flags: step.flags,
            words,
            ..Event::default()
        });
        self
    }

    /// Adds events.
    pub fn play(&mut self, steps: impl IntoIterator<Item = Step>) -> &mut Self {
        for step in steps {
            self.push(step);
        }
        self
    }

    /// Adds a definition, such as a device of a known size.
    pub fn define(&mut self, definition: Definition) -> &mut Self {
        if let Definition::Device(device) = &definition {
            self.devices.push(device.ordinal);
        }
        self.definitions.push(definition);
        self
    }

    /// The definitions so far; the process's own is the first.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The events so far.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events so far, to be spoilt.
    pub fn events_mut(&mut self) -> &mut Vec<Event> {
        &mut self.events
    }

    /// The anchor of every trace: tick 0 is [`EPOCH_NS`].
    pub fn anchor() -> Anchor {
        Anchor {
            ticks: 0,
            monotonic_ns: 0,
            realtime_ns: EPOCH_NS,
        }
    }

    /// The process after all of it.
    pub fn process(&self) -> Process {
        let mut process = Process::default();
        for definition in &self.definitions {
            process.define(definition.clone());
        }
        process.anchor(Self::anchor());
        for event in &self.events {
            process.apply(event);
        }
        process
    }

    fn define_device(&mut self, ordinal: i16) {
        if ordinal >= 0 && !self.devices.contains(&ordinal) {
            self.define(Definition::Device(DeviceDefinition {
                ordinal,
                uuid: format!("GPU-{ordinal:08}"),
                name: "test".into(),
                total_bytes: 80 * GIB,
            }));
        }
    }

    fn mark(&mut self, name: &str) -> u32 {
        let next = self.marks.len() as u32 + 1;
        if let Some(&id) = self.marks.get(name) {
            return id;
        }
        self.marks.insert(name.into(), next);
        self.definitions.push(Definition::Mark {
            id: next,
            name: name.into(),
        });
        next
    }

    fn stack(&mut self, frames: &[TestFrame]) -> StackId {
        if frames.is_empty() {
            return StackId::NONE;
        }
        if let Some(&id) = self.stacks.get(frames) {
            return id;
        }
        let encoded = frames.iter().map(|frame| self.frame(frame)).collect();
        let id = StackId(self.stacks.len() as u32 + 2);
        self.stacks.insert(frames.to_vec(), id);
        self.definitions.push(Definition::Stack(StackDefinition {
            id,
            left_out: 0,
            frames: encoded,
        }));
        id
    }

    fn frame(&mut self, frame: &TestFrame) -> Frame {
        match frame {
            TestFrame::Python {
                file,
                line,
                function,
            } => Frame::Python {
                code: self.code(file, function),
                line: *line,
            },
            TestFrame::Native { .. } => self.native(frame),
        }
    }

    fn code(&mut self, file: &str, function: &str) -> CodeId {
        let key = (file.to_owned(), function.to_owned());
        let next = CodeId(self.codes.len() as u32 + 1);
        if let Some(&id) = self.codes.get(&key) {
            return id;
        }
        self.codes.insert(key, next);
        self.definitions.push(Definition::Code(CodeDefinition {
            id: next,
            function: function.into(),
            file: file.into(),
            first_line: 1,
        }));
        next
    }

    fn native(&mut self, frame: &TestFrame) -> Frame {
        if let Some(&known) = self.natives.get(frame) {
            return known;
        }
        let TestFrame::Native {
            module,
            function,
            file,
            line,
        } = frame
        else {
            return Frame::Elided;
        };
        let next = ModuleId(self.modules.len() as u32 + 1);
        let id = *self.modules.entry(module.clone()).or_insert(next);
        if id == next {
            self.definitions.push(Definition::Module(ModuleDefinition {
                id,
                path: module.clone(),
                ..ModuleDefinition::default()
            }));
        }
        let address = 0x1000 + 16 * self.natives.len() as u64;
        self.definitions.push(Definition::Symbol(SymbolDefinition {
            module: id,
            address,
            functions: vec![SymbolFunction {
                function: function.clone(),
                file: file.clone(),
                line: *line,
            }],
        }));
        let made = Frame::Native {
            module: id,
            address,
        };
        self.natives.insert(frame.clone(), made);
        made
    }
}

fn is_torch(frames: &[TestFrame]) -> bool {
    frames.iter().any(
        |frame| matches!(frame, TestFrame::Native { module, .. } if module == "libc10_cuda.so"),
    )
}
