//! One process: who it is, its memory, its clocks, how it ended.

use std::collections::{BTreeMap, HashMap, HashSet};

use gpumem_wire::define::{Anchor, EndDefinition, ProcessDefinition, PythonStatus};
use gpumem_wire::{
    Definition, DeviceOrdinal, Event, Flags, Kind, LiveTable, Seq, StackId, ThreadId,
};

use crate::model::clock::TickClock;
use crate::model::definitions::Definitions;
use crate::model::exit::{AtExit, ExitReason};
use crate::model::history::{ClockSource, History};
use crate::model::memory::Memory;
use crate::model::place::{Framework, Places};
use crate::model::scope::Scope;
use crate::model::selfcheck::TorchChecks;
use crate::model::totals::DeviceTotals;

/// Failed allocations that are kept one by one.
const FAILURES: usize = 256;
/// Marks that are kept one by one.
const MARKS: usize = 1 << 16;

/// Devices that a process can have: more than any host holds, physical or MIG.
const DEVICES: i16 = 64;

/// No allocation is larger: the address space of a GPU has 47 bits. An event that says so is damaged or made up.
const ALLOCATION_BYTES: u64 = 1 << 47;

/// Whether a process still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// It runs, or nothing says that it does not.
    #[default]
    Running,
    /// It said goodbye.
    Ended,
    /// It went without a goodbye: a signal, or `_exit`.
    Killed,
    /// It said no goodbye, and whether it still runs cannot be seen from here: it was on another host, or before a reboot.
    Unknown,
}

impl State {
    /// The name in tables. In JSON what is unknown is null.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Killed => "killed",
            Self::Unknown => "unknown",
        }
    }
}

/// `CUDA_ERROR_OUT_OF_MEMORY`.
const OUT_OF_MEMORY: u64 = 2;

/// An allocation that failed for want of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// [`Kind::BlockOom`]: a framework ran out of memory. [`Kind::AllocFailed`]: one call of the driver failed, which an
    /// allocator may answer by emptying its cache.
    pub kind: Kind,
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// On which device.
    pub device: DeviceOrdinal,
    /// From where.
    pub stack: StackId,
    /// On which thread.
    pub thread: ThreadId,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes in use on that device then, see [`DeviceTotals::live`].
    pub live_bytes: u64,
    /// Bytes taken from the driver on that device then.
    pub reserved_bytes: u64,
}

/// A named moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// Its name is [`Definitions::mark`] of this.
    pub id: u32,
}

/// How often each thing that could be a step was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCounts {
    /// Named marks.
    pub marks: u64,
    /// `Optimizer.step`.
    pub optimizer_steps: u64,
    /// `Optimizer.zero_grad`.
    pub zero_grads: u64,
    /// Batches of a DataLoader.
    pub batches: u64,
    /// Root backward passes.
    pub backwards: u64,
}

/// Events that were lost, by the shim's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Allocations: memory that is alive but not known.
    pub allocations: u64,
    /// Frees: memory that is known as alive and is not.
    pub frees: u64,
    /// Other events.
    pub other: u64,
    /// When the first were lost, in nanoseconds since the epoch: from then on the live map is inexact.
    pub since_ns: Option<u64>,
}

impl Lost {
    /// All lost events.
    pub fn total(&self) -> u64 {
        self.allocations
            .saturating_add(self.frees)
            .saturating_add(self.other)
    }
}

/// One process.
#[derive(Default)]
pub struct Process {
    definition: ProcessDefinition,
    definitions: Definitions,
    python: Option<PythonStatus>,
    end: Option<EndDefinition>,
    state: State,
    clock: TickClock,
    memory: Memory,
    scopes: HashMap<StackId, Scope>,
    steps: StepCounts,
    marks: Vec<Mark>,
    open_backwards: HashSet<Seq>,
    failures: Vec<Failure>,
    failure_count: u64,
    lost: Lost,
    events: u64,
    last_event_ns: u64,
    last_seq: Seq,
}

impl Process {
    /// Who it is.
    pub fn definition(&self) -> &ProcessDefinition {
        &self.definition
    }

    /// What its numbers stand for.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// Whether its Python frames could be read; `None` where the shim did not say.
    pub fn python(&self) -> Option<PythonStatus> {
        self.python
    }

    /// Its goodbye.
    pub fn end(&self) -> Option<EndDefinition> {
        self.end
    }

    /// Whether it still runs.
    pub fn state(&self) -> State {
        self.state
    }

    /// Says what became of a process that did not say it itself. A goodbye is not overruled.
    pub fn set_state(&mut self, state: State) {
        if self.end.is_none() {
            self.state = state;
        }
    }

    /// Its memory.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Everything alive in it.
    pub fn live(&self) -> &LiveTable {
        self.memory.table()
    }

    /// Where memory was made.
    pub fn places(&self) -> &Places {
        self.memory.places()
    }

    /// The past of each place.
    pub fn history(&self) -> &History {
        self.memory.history()
    }

    /// The totals by device; host memory is [`DeviceOrdinal::HOST`].
    pub fn totals(&self) -> &BTreeMap<DeviceOrdinal, DeviceTotals> {
        self.memory.totals()
    }

    /// Torch's totals against ours, by device.
    pub fn checks(&self) -> &BTreeMap<DeviceOrdinal, TorchChecks> {
        self.memory.checks()
    }

    /// The live set at exit; `None` while nothing says that the process ends.
    pub fn at_exit(&self) -> Option<&AtExit> {
        self.memory.at_exit()
    }

    /// Allocations that failed for want of memory, the first few hundred.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    /// How many allocations failed, for whatever reason.
    pub fn failure_count(&self) -> u64 {
        self.failure_count
    }

    /// The named moments, in order.
    pub fn marks(&self) -> &[Mark] {
        &self.marks
    }

    /// How often each thing that could be a step was seen.
    pub fn steps(&self) -> StepCounts {
        self.steps
    }

    /// Events that were lost: those whose loss was announced, and at the end those that the shim counted beyond them.
    pub fn lost(&self) -> Lost {
        let mut lost = self.lost;
        if let Some(end) = self.end
            && end.lost_events > lost.total()
        {
            lost.other += end.lost_events - lost.total();
            lost.since_ns.get_or_insert(end.time_ns);
        }
        lost
    }

    /// Frees of what was never seen being made.
    pub fn unknown_frees(&self) -> u64 {
        self.memory.unknown()
    }

    /// How many events were applied.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The highest number of an event that was applied.
    pub fn last_seq(&self) -> Seq {
        self.last_seq
    }

    /// The time of the last event or of the goodbye, in nanoseconds since the epoch; without either, of the beginning.
    pub fn last_ns(&self) -> u64 {
        let goodbye_ns = self.end.map_or(0, |end| end.time_ns);
        self.last_event_ns
            .max(goodbye_ns)
            .max(self.definition.started_ns)
    }

    /// The time of a tick in nanoseconds since the epoch.
    pub fn time_ns(&self, ticks: u64) -> u64 {
        self.clock.at(ticks)
    }

    /// Whether a definition is of this very process.
    pub fn is(&self, other: &ProcessDefinition) -> bool {
        let mine = &self.definition;
        (mine.pid, mine.start_ticks, mine.pid_namespace, mine.nonce)
            == (
                other.pid,
                other.start_ticks,
                other.pid_namespace,
                other.nonce,
            )
            && mine.boot_id == other.boot_id
            && mine.host == other.host
    }

    /// Takes a definition.
    pub fn define(&mut self, definition: Definition) {
        match definition {
            Definition::Process(process) => {
                for framework in Framework::switched_off(&process.environment) {
                    self.memory.places_mut().switch_off(framework);
                }
                self.definition = process;
            }
            Definition::Python(status) => self.python = Some(status),
            Definition::End(end) => {
                self.state = if end.orderly {
                    State::Ended
                } else {
                    State::Killed
                };
                self.end = Some(end);
            }
            Definition::Device(device) if !(0..DEVICES).contains(&device.ordinal) => {}
            other => self.definitions.add(other),
        }
    }

    /// Takes the anchor of an event chunk, before its events.
    pub fn anchor(&mut self, anchor: Anchor) {
        self.clock.add(anchor);
    }

    /// Counts events that were lost on the way here: a damaged chunk, say.
    pub fn lose_events(&mut self, count: u64) {
        self.lose(0, 0, count, self.last_ns());
    }

    /// Takes an event. Events come in the order of their numbers.
    pub fn apply(&mut self, event: &Event) {
        let event = &Event {
            device: known(event.device),
            ..*event
        };
        self.events += 1;
        self.last_seq = self.last_seq.max(event.seq);
        // A better line through the anchors must not make time run backwards.
        let time_ns = self.clock.at(event.time).max(self.last_event_ns);
        self.last_event_ns = time_ns;
        let Some(kind) = event.kind() else { return };
        if makes_memory(kind) && event.words[1] > ALLOCATION_BYTES {
            self.lose(0, 0, 1, time_ns);
            return;
        }
        if kind == Kind::Finalising || event.flags.contains(Flags::FINALISING) {
            self.memory.end(ExitReason::Finalising, time_ns);
        }
        match kind {
            Kind::ExitHandler => self.memory.end(ExitReason::ExitHandler, time_ns),
            Kind::Mark => self.mark(event, time_ns),
            Kind::UserScope => self.scope(event.stack, time_ns),
            Kind::BackwardBegin => {
                // A pass that begins inside another (checkpointing does that) is not a step.
                if self.open_backwards.is_empty() {
                    self.steps.backwards += 1;
                    self.tick(ClockSource::Backward, time_ns);
                    self.memory.peaks_mut().set_in_backward(true);
                }
                self.open_backwards.insert(event.seq);
            }
            Kind::BackwardEnd => self.end_backward(Seq(event.words[0])),
            Kind::BlockOom | Kind::AllocFailed => self.fail(kind, event, time_ns),
            Kind::Gap => {
                let [allocations, frees, other, _] = event.words;
                // The end of a pass may be among what was lost.
                self.open_backwards.clear();
                self.memory.peaks_mut().set_in_backward(false);
                self.lose(allocations, frees, other, time_ns);
            }
            _ => {}
        }
        self.memory.apply(&self.definitions, event, time_ns);
        if matches!(kind, Kind::BlockAlloc | Kind::BlockFree) {
            self.memory.check_torch(event, time_ns);
        }
    }

    fn tick(&mut self, source: ClockSource, time_ns: u64) {
        self.memory.history_mut().tick(source, time_ns);
    }

    /// The pass that this event began has ended.
    fn end_backward(&mut self, begin: Seq) {
        if self.open_backwards.remove(&begin) && self.open_backwards.is_empty() {
            self.memory.peaks_mut().set_in_backward(false);
        }
    }

    fn mark(&mut self, event: &Event, time_ns: u64) {
        self.steps.marks += 1;
        if self.marks.len() < MARKS {
            self.marks.push(Mark {
                time_ns,
                id: event.words[0] as u32,
            });
        }
        self.tick(ClockSource::Mark, time_ns);
    }

    fn scope(&mut self, stack: StackId, time_ns: u64) {
        let definitions = &self.definitions;
        let scope = *self
            .scopes
            .entry(stack)
            .or_insert_with(|| Scope::of(definitions, stack));
        match scope {
            Scope::OptimizerStep => {
                self.steps.optimizer_steps += 1;
                self.tick(ClockSource::OptimizerStep, time_ns);
            }
            Scope::ZeroGrad => self.steps.zero_grads += 1,
            Scope::DataLoader => self.steps.batches += 1,
            Scope::Other => {}
        }
    }

    fn fail(&mut self, kind: Kind, event: &Event, time_ns: u64) {
        self.failure_count += 1;
        // A call may fail for another reason, such as memory that is registered already.
        if kind == Kind::AllocFailed && event.words[1] != OUT_OF_MEMORY {
            return;
        }
        if self.failures.len() >= FAILURES {
            return;
        }
        let totals = self
            .totals()
            .get(&event.device)
            .copied()
            .unwrap_or_default();
        self.failures.push(Failure {
            kind,
            time_ns,
            device: event.device,
            stack: event.stack,
            thread: event.thread,
            requested_bytes: event.words[0],
            live_bytes: totals.live.live_bytes,
            reserved_bytes: totals.reserved.live_bytes,
        });
        let (stack, thread) = (event.stack, event.thread);
        let now = self.memory.moment(event.device, stack, thread, time_ns);
        let by_framework = kind == Kind::BlockOom;
        self.memory
            .peaks_mut()
            .ran_out(event.device, now, by_framework);
    }

    fn lose(&mut self, allocations: u64, frees: u64, other: u64, time_ns: u64) {
        if (allocations, frees, other) == (0, 0, 0) {
            return;
        }
        let lost = &mut self.lost;
        lost.allocations = lost.allocations.saturating_add(allocations);
        lost.frees = lost.frees.saturating_add(frees);
        lost.other = lost.other.saturating_add(other);
        lost.since_ns.get_or_insert(time_ns);
    }
}

/// The device, if a host can have it. A stream that names others must not make the model keep totals for each of them.
fn known(device: DeviceOrdinal) -> DeviceOrdinal {
    let is_known = device == DeviceOrdinal::HOST || (0..DEVICES).contains(&device.0);
    if is_known {
        device
    } else {
        DeviceOrdinal::UNKNOWN
    }
}

/// Whether word 1 of such an event is the size of something that comes to life.
const fn makes_memory(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::DeviceAlloc
            | Kind::ManagedAlloc
            | Kind::PoolAlloc
            | Kind::PhysicalCreate
            | Kind::Map
            | Kind::BlockAlloc
    )
}

#[cfg(test)]
mod tests;
