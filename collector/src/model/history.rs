//! What the past leaves per place, bounded however long the program runs.
//!
//! The model reports births, deaths and ticks in the order of the events; the insights read, per [`PlaceId`]: rows per step
//! of each clock ([`steps`]), what is still alive by the step of its birth ([`cohorts`]), and the place's own rhythm
//! ([`repetitions`]). Steps are counted from 0: step n of a clock is what happens after its n-th tick.

pub mod cohorts;
pub mod repetitions;
pub mod steps;
mod thin;

use std::collections::{HashMap, VecDeque};

use gpumem_wire::{Event, Flags, LiveObject, Object, StackId};

pub use cohorts::{Cohort, Cohorts};
pub use repetitions::{Repetition, Repetitions};
pub use steps::{Row, StepRows};

use crate::model::place::PlaceId;

/// Which clock ticked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockSource {
    /// A phase that a person named.
    Mark,
    /// An optimizer step.
    OptimizerStep,
    /// A root backward pass.
    Backward,
}

/// How many clock sources there are.
const SOURCES: usize = 3;
/// Ticks whose times are kept per clock; beyond it every second one is forgotten.
const TICK_TIMES: usize = 512;
/// Deaths that can still be taken back with their birth step known. A free that fails is undone by its own thread's next
/// event, so a few suffice but for a context's end.
const GRAVES: usize = 4096;
/// Ticks after a freeze that may be lifted that are kept in the order of what else happened.
const PENDING_TICKS: usize = 4096;
/// Stacks told apart within one place.
const STACKS: usize = 8;

impl ClockSource {
    /// All sources, the most telling first: what a person says, then what an optimizer says.
    pub const ALL: [Self; SOURCES] = [Self::Mark, Self::OptimizerStep, Self::Backward];

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

/// A moment in every clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds since the epoch.
    pub time_ns: u64,
    steps: [u32; SOURCES],
}

impl Moment {
    /// The step of a clock at this moment.
    pub const fn step(&self, source: ClockSource) -> u32 {
        self.steps[source.index()]
    }
}

/// The ticks of one clock.
#[derive(Clone, Debug, Default)]
struct Ticks {
    count: u32,
    stride: u32,
    /// (step that the tick began, its time); every `stride`-th.
    times: Vec<(u32, u64)>,
}

impl Ticks {
    fn tick(&mut self, time_ns: u64) {
        self.count = self.count.saturating_add(1);
        let stride = self.stride.max(1);
        if !(self.count - 1).is_multiple_of(stride) {
            return;
        }
        self.times.push((self.count, time_ns));
        if self.times.len() > TICK_TIMES {
            self.stride = stride * 2;
            let stride = self.stride;
            self.times
                .retain(|(step, _)| (step - 1).is_multiple_of(stride));
        }
    }

    /// When a step began, between the ticks that were kept linearly.
    fn time_of(&self, step: u32) -> Option<u64> {
        let after = self.times.partition_point(|&(known, _)| known < step);
        match (self.times.get(after.wrapping_sub(1)), self.times.get(after)) {
            (_, Some(&(known, time))) if known == step => Some(time),
            (Some(&(before, from)), Some(&(known, to))) => {
                let share = f64::from(step - before) / f64::from(known - before);
                Some(from + (to.saturating_sub(from) as f64 * share) as u64)
            }
            (Some(&(_, time)), None) | (None, Some(&(_, time))) => Some(time),
            (None, None) => None,
        }
    }
}

/// Where one live object came from, in the terms of its place.
#[derive(Clone, Copy, Debug)]
struct Birth {
    steps: [u32; SOURCES],
    /// The number of the birth at its place, from 0.
    ordinal: u32,
}

/// Bytes of one stack of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackShare {
    /// The stack.
    pub stack: StackId,
    /// Its bytes alive.
    pub live_bytes: u64,
    /// The most of them.
    pub max_live_bytes: u64,
}

/// The past of one place.
#[derive(Clone, Debug, Default)]
pub struct PlaceHistory {
    /// Bytes alive.
    pub live_bytes: u64,
    /// Objects alive.
    pub live_blocks: u64,
    /// The most bytes ever alive.
    pub max_live_bytes: u64,
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Objects ever made.
    pub births: u64,
    /// Objects that died.
    pub deaths: u64,
    /// Those of them that Python's cycle collector freed.
    pub collected: u64,
    /// The first birth.
    pub first: Moment,
    /// The last birth.
    pub last: Moment,
    /// The first stacks that made objects here, with their shares.
    pub stacks: Vec<StackShare>,
    /// Its own rhythm.
    pub repetitions: Repetitions,
    rows: [StepRows; SOURCES],
    cohorts: [Cohorts; SOURCES],
    by_ordinal: Cohorts,
}

impl Pending {
    fn tick(&mut self, source: ClockSource, time_ns: u64) {
        if self.ticks < PENDING_TICKS {
            self.ticks += 1;
            self.happened.push((time_ns, Happened::Tick(source)));
        } else {
            let more = &mut self.more_ticks[source.index()];
            *more = more.saturating_add(1);
        }
    }
}

impl PlaceHistory {
    /// What is alive by the step of its birth.
    pub fn cohorts(&self, source: ClockSource) -> &[Cohort] {
        self.cohorts[source.index()].as_slice()
    }

    /// What is alive by the number of its birth at this place.
    pub fn cohorts_by_birth(&self) -> &[Cohort] {
        self.by_ordinal.as_slice()
    }

    /// The stack that holds, or held, most of it.
    pub fn main_stack(&self) -> Option<StackId> {
        self.stacks
            .iter()
            .max_by_key(|share| (share.live_bytes, share.max_live_bytes))
            .map(|share| share.stack)
    }

    fn share(&mut self, stack: StackId) -> Option<&mut StackShare> {
        let index = match self.stacks.iter().position(|share| share.stack == stack) {
            Some(index) => index,
            None if self.stacks.len() < STACKS => {
                self.stacks.push(StackShare {
                    stack,
                    live_bytes: 0,
                    max_live_bytes: 0,
                });
                self.stacks.len() - 1
            }
            None => return None,
        };
        self.stacks.get_mut(index)
    }

    fn touch(&mut self, now: Moment) {
        for (rows, step) in self.rows.iter_mut().zip(now.steps) {
            rows.advance(step, self.live_bytes, self.live_blocks);
        }
    }

    fn add(&mut self, object: &LiveObject, birth: Birth) {
        self.live_bytes = self.live_bytes.saturating_add(object.bytes);
        self.live_blocks += 1;
        self.max_live_bytes = self.max_live_bytes.max(self.live_bytes);
        for (cohorts, step) in self.cohorts.iter_mut().zip(birth.steps) {
            cohorts.add(step, object.bytes);
        }
        self.by_ordinal.add(birth.ordinal, object.bytes);
        if let Some(share) = self.share(object.stack) {
            share.live_bytes = share.live_bytes.saturating_add(object.bytes);
            share.max_live_bytes = share.max_live_bytes.max(share.live_bytes);
        }
    }

    fn remove(&mut self, object: &LiveObject, birth: Birth) {
        self.live_bytes = self.live_bytes.saturating_sub(object.bytes);
        self.live_blocks = self.live_blocks.saturating_sub(1);
        for (cohorts, step) in self.cohorts.iter_mut().zip(birth.steps) {
            cohorts.remove(step, object.bytes);
        }
        self.by_ordinal.remove(birth.ordinal, object.bytes);
        if let Some(share) = self
            .stacks
            .iter_mut()
            .find(|share| share.stack == object.stack)
        {
            share.live_bytes = share.live_bytes.saturating_sub(object.bytes);
        }
    }
}

/// The past of a process, per place.
#[derive(Default)]
pub struct History {
    ticks: [Ticks; SOURCES],
    places: Vec<PlaceHistory>,
    births: HashMap<(Object, u64), Birth>,
    graves: VecDeque<((Object, u64), Birth)>,
    first_ns: Option<u64>,
    last_ns: u64,
    /// What dies now is freed by Python's cycle collector.
    collecting: bool,
    frozen_ns: Option<u64>,
    /// What happened since a freeze that may be lifted; `None` while nothing is frozen, or for good.
    pending: Option<Pending>,
}

/// What a freeze kept from counting. There are no births among it, so there is no more of it than was alive.
#[derive(Default)]
struct Pending {
    happened: Vec<(u64, Happened)>,
    ticks: usize,
    /// Ticks beyond those that are kept in their order.
    more_ticks: [u32; SOURCES],
}

/// Something that happened to places or clocks.
#[derive(Clone, Copy)]
enum Happened {
    Died(PlaceId, LiveObject),
    Tick(ClockSource),
}

impl History {
    /// What the event says by which the next deaths come.
    pub(crate) fn next(&mut self, event: &Event) {
        self.collecting = event.flags.contains(Flags::DURING_GC);
    }

    /// An object came to life.
    pub fn born(&mut self, place: PlaceId, object: &LiveObject, time_ns: u64) {
        let Some(now) = self.now(time_ns) else { return };
        let past = self.place_mut(place);
        past.touch(now);
        let ordinal = u32::try_from(past.births).unwrap_or(u32::MAX);
        let birth = Birth {
            steps: now.steps,
            ordinal,
        };
        if past.births == 0 {
            past.first = now;
        }
        past.last = now;
        past.births += 1;
        past.allocated_bytes = past.allocated_bytes.saturating_add(object.bytes);
        past.add(object, birth);
        for rows in &mut past.rows {
            rows.allocate(object.bytes, past.live_bytes, past.live_blocks);
        }
        past.repetitions
            .born(time_ns, object.bytes, past.live_bytes, past.live_blocks);
        self.births.insert((object.object, object.key), birth);
    }

    /// An object died.
    pub fn died(&mut self, place: PlaceId, object: &LiveObject, time_ns: u64) {
        let key = (object.object, object.key);
        if let Some(pending) = &mut self.pending
            && self.births.contains_key(&key)
        {
            let happened = Happened::Died(place, *object);
            pending.happened.push((time_ns, happened));
        }
        let Some(now) = self.now(time_ns) else { return };
        let Some(birth) = self.births.remove(&key) else {
            return;
        };
        if self.graves.len() == GRAVES {
            self.graves.pop_front();
        }
        self.graves.push_back((key, birth));
        let collected = u64::from(self.collecting);
        let past = self.place_mut(place);
        past.touch(now);
        past.deaths += 1;
        past.collected += collected;
        past.remove(object, birth);
        for rows in &mut past.rows {
            rows.free(object.bytes, past.live_bytes, past.live_blocks);
        }
        past.repetitions.shrunk(past.live_bytes, past.live_blocks);
    }

    /// An object whose death was announced lives on. The valley of this step keeps the death that was not one.
    pub fn restored(&mut self, place: PlaceId, object: &LiveObject, time_ns: u64) {
        let Some(now) = self.now(time_ns) else { return };
        let key = (object.object, object.key);
        if self.births.contains_key(&key) {
            return;
        }
        let grave = self.graves.iter().rposition(|(dead, _)| *dead == key);
        let birth = match grave.and_then(|index| self.graves.remove(index)) {
            Some((_, birth)) => birth,
            None => {
                let past = self.place_mut(place);
                Birth {
                    steps: past.last.steps,
                    ordinal: u32::try_from(past.births.saturating_sub(1)).unwrap_or(u32::MAX),
                }
            }
        };
        let past = self.place_mut(place);
        past.touch(now);
        past.deaths = past.deaths.saturating_sub(1);
        past.collected = past.collected.min(past.deaths);
        past.add(object, birth);
        for rows in &mut past.rows {
            rows.restore(object.bytes, past.live_bytes, past.live_blocks);
        }
        past.repetitions.grown(past.live_bytes, past.live_blocks);
        self.births.insert(key, birth);
    }

    /// A clock ticked.
    pub fn tick(&mut self, source: ClockSource, time_ns: u64) {
        if self.now(time_ns).is_some() {
            self.ticks[source.index()].tick(time_ns);
        } else if let Some(pending) = &mut self.pending {
            pending.tick(source, time_ns);
        }
    }

    /// What is alive now is what is alive at exit: nothing after this counts. After [`History::freeze_for_now`]: that was
    /// the end indeed.
    pub fn freeze(&mut self, time_ns: u64) {
        self.first_ns.get_or_insert(time_ns);
        self.frozen_ns.get_or_insert(time_ns);
        self.pending = None;
    }

    /// What is alive now is what is alive at exit, unless [`History::thaw`] says that it was not the end.
    pub fn freeze_for_now(&mut self, time_ns: u64) {
        if self.frozen_ns.is_none() {
            self.freeze(time_ns);
            self.pending = Some(Pending::default());
        }
    }

    /// It was not the end: all is as if nothing had been frozen. Does nothing after [`History::freeze`].
    pub fn thaw(&mut self, time_ns: u64) {
        let Some(pending) = self.pending.take() else {
            return;
        };
        self.frozen_ns = None;
        for (then_ns, happened) in pending.happened {
            match happened {
                Happened::Died(place, object) => self.died(place, &object, then_ns),
                Happened::Tick(source) => self.tick(source, then_ns),
            }
        }
        for (source, more) in ClockSource::ALL.into_iter().zip(pending.more_ticks) {
            for _ in 0..more {
                self.tick(source, time_ns);
            }
        }
    }

    /// All places that ever made something, with their past.
    pub fn places(&self) -> impl Iterator<Item = (PlaceId, &PlaceHistory)> {
        (0..)
            .map(PlaceId)
            .zip(&self.places)
            .filter(|(_, past)| past.births > 0)
    }

    /// One place's past.
    pub fn place(&self, place: PlaceId) -> Option<&PlaceHistory> {
        self.places
            .get(place.0 as usize)
            .filter(|past| past.births > 0)
    }

    /// The rows of a place for a clock, each with the step at which it begins, up to and with the step that is still open.
    pub fn rows(&self, place: PlaceId, source: ClockSource) -> Vec<(u32, Row)> {
        let now = self.ticks[source.index()].count;
        self.place(place).map_or_else(Vec::new, |past| {
            past.rows[source.index()].closed(now, past.live_bytes, past.live_blocks)
        })
    }

    /// How often a clock ticked.
    pub fn ticks(&self, source: ClockSource) -> u32 {
        self.ticks[source.index()].count
    }

    /// When a step began; for step 0, when the history began.
    pub fn step_time(&self, source: ClockSource, step: u32) -> Option<u64> {
        if step == 0 {
            return self.first_ns;
        }
        self.ticks[source.index()].time_of(step)
    }

    /// The step of a clock in which an object was born that lives, or lived when the live set was frozen.
    pub fn birth_step(&self, object: &LiveObject, source: ClockSource) -> Option<u32> {
        let birth = self.births.get(&(object.object, object.key))?;
        Some(birth.steps[source.index()])
    }

    /// Nanoseconds a step of this clock takes on average, from the first tick to the last.
    pub fn step_ns(&self, source: ClockSource) -> Option<f64> {
        let times = &self.ticks[source.index()].times;
        let (&(first, from), &(last, to)) = (times.first()?, times.last()?);
        (last > first && to > from).then(|| (to - from) as f64 / f64::from(last - first))
    }

    /// The time of the first event and of the last that counts.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        Some((self.first_ns?, self.frozen_ns.unwrap_or(self.last_ns)))
    }

    /// When anything last happened: a birth, a death, a tick.
    pub fn active_until_ns(&self) -> u64 {
        self.last_ns
    }

    /// When the live set was frozen, if it was.
    pub fn frozen_ns(&self) -> Option<u64> {
        self.frozen_ns
    }

    /// This moment in all clocks, or `None` once frozen.
    fn now(&mut self, time_ns: u64) -> Option<Moment> {
        if self.frozen_ns.is_some() {
            return None;
        }
        self.first_ns.get_or_insert(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        let mut steps = [0; SOURCES];
        for (step, ticks) in steps.iter_mut().zip(&self.ticks) {
            *step = ticks.count;
        }
        Some(Moment { time_ns, steps })
    }

    fn place_mut(&mut self, place: PlaceId) -> &mut PlaceHistory {
        let index = place.0 as usize;
        if self.places.len() <= index {
            self.places.resize_with(index + 1, PlaceHistory::default);
        }
        &mut self.places[index]
    }
}

#[cfg(test)]
mod tests;
