//! The live table: which objects are alive, kept by the rule table alone.
//!
//! Events must come in the order of their numbers. A destroying event is recorded *before* the real call, so that no other
//! thread's allocation of the same address can come between; if the call fails, [`crate::Kind::Undone`] restores what it removed.

use std::collections::{BTreeMap, HashMap};

use crate::event::Event;
use crate::ids::{DeviceOrdinal, Handle, Seq, StackId, ThreadId};
use crate::rules::{self, Action, Object};

/// One live object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveObject {
    /// What it is.
    pub object: Object,
    /// Its key, see [`Object`].
    pub key: u64,
    /// Its address or handle as the program has it.
    pub value: u64,
    /// Its bytes; 0 for objects without bytes.
    pub bytes: u64,
    /// Its device.
    pub device: DeviceOrdinal,
    /// What it belongs to: the context of an allocation, the pool of a block (0: the device's current one), for a mapping the
    /// key of its physical memory.
    pub owner: u64,
    /// The stream that a pool block was allocated on (0: the default stream); 0 of all others.
    pub stream: u64,
    /// The number of the event that made it.
    pub born: Seq,
    /// The time of that event, in ticks.
    pub born_ticks: u64,
    /// The stack that made it.
    pub stack: StackId,
    /// The thread that made it.
    pub thread: ThreadId,
    /// References to a physical allocation or primary context by handle.
    pub references: u32,
    /// Mappings of a physical allocation.
    pub mappings: u32,
}

/// What an event changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An object came to life.
    Born(LiveObject),
    /// An object died. `implicit`: with its context, or because its address was handed out again.
    Died {
        /// The object as it was.
        object: LiveObject,
        /// Whether the program did not free it itself.
        implicit: bool,
    },
    /// A destroying call failed: the object lives on.
    Restored(LiveObject),
    /// The event named an object that is not known (freed twice, made before we watched, or made out of our sight).
    Unknown {
        /// The key that it named.
        key: u64,
    },
}

/// The kinds of memory that `Free` may free.
const LINEAR: [Object; 3] = [
    Object::DeviceAllocation,
    Object::PoolBlock,
    Object::ManagedAllocation,
];

/// What a destroying event removed, kept until its thread shows that the call succeeded.
struct Removal {
    begin: Seq,
    gone: Vec<LiveObject>,
    /// Handles of physical memory that lost a reference.
    dropped: Vec<(Handle, u64)>,
    /// The device whose primary context lost a reference.
    released: Option<DeviceOrdinal>,
    /// The device whose primary context died.
    primary: Option<DeviceOrdinal>,
}

impl Removal {
    fn new(begin: Seq) -> Self {
        Self {
            begin,
            gone: Vec::new(),
            dropped: Vec::new(),
            released: None,
            primary: None,
        }
    }
}

/// All live objects of one process.
#[derive(Default)]
pub struct LiveTable {
    objects: HashMap<(Object, u64), LiveObject>,
    /// Mappings by address, for ranges.
    mappings: BTreeMap<u64, u64>,
    /// Physical memory by handle.
    handles: HashMap<Handle, u64>,
    /// Primary contexts by device.
    primaries: HashMap<DeviceOrdinal, u64>,
    /// The last destroying event of each thread.
    removals: HashMap<ThreadId, Removal>,
}

impl LiveTable {
    /// Applies one event and reports what changed, in order.
    pub fn apply(&mut self, event: &Event, mut report: impl FnMut(Change)) {
        let Some(kind) = event.kind() else { return };
        let action = rules::action(kind);
        let report: &mut dyn FnMut(Change) = &mut report;
        if action == Action::Undo {
            self.undo(event, report);
            return;
        }
        // Any later call of a thread shows that its destroying call before did not fail. What only notes something, such as that
        // the interpreter finalises, may come from within that very call.
        if action != Action::Nothing {
            self.removals.remove(&event.thread);
        }
        let [first, second, third, _] = event.words;
        let mut removal = Removal::new(event.seq);
        match action {
            Action::Create(object) => self.create(object, event, report),
            Action::Destroy(kinds) => match kinds
                .iter()
                .find_map(|&object| self.objects.remove(&(object, first)))
            {
                Some(object) => removal.gone.push(object),
                None => report(Change::Unknown { key: first }),
            },
            Action::Map => self.map(event, first, second, Handle(third), report),
            Action::Unmap => self.unmap(first, second, &mut removal, report),
            Action::AddReference => self.add_reference(Handle(first), second, report),
            Action::DropReference => self.drop_reference(Handle(first), &mut removal, report),
            Action::RetainPrimary => self.retain_primary(event, report),
            Action::ReleasePrimary => self.release_primary(event.device, &mut removal, report),
            Action::ResetPrimary => match self.primaries.get(&event.device).copied() {
                Some(context) => self.end_context(context, &mut removal),
                None => report(Change::Unknown { key: 0 }),
            },
            Action::DestroyContext => self.end_context(first, &mut removal),
            Action::Undo | Action::Nothing => {}
        }
        let implicit = matches!(
            action,
            Action::DestroyContext | Action::ResetPrimary | Action::ReleasePrimary
        );
        for &object in &removal.gone {
            report(Change::Died { object, implicit });
        }
        if !removal.gone.is_empty() || !removal.dropped.is_empty() || removal.released.is_some() {
            self.removals.insert(event.thread, removal);
        }
    }

    /// All live objects, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &LiveObject> {
        self.objects.values()
    }

    /// The object of this kind with this key.
    pub fn get(&self, object: Object, key: u64) -> Option<&LiveObject> {
        self.objects.get(&(object, key))
    }

    /// The physical memory that a handle names now.
    pub fn physical(&self, handle: Handle) -> Option<&LiveObject> {
        self.objects
            .get(&(Object::Physical, *self.handles.get(&handle)?))
    }

    /// How many objects are alive.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether nothing is alive.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// A reference found by an address: what is mapped there may have lost its last handle, and has one again from now on.
    fn add_reference(&mut self, handle: Handle, address: u64, report: &mut dyn FnMut(Change)) {
        let mapped = || {
            let (&start, &bytes) = self.mappings.range(..=address).next_back()?;
            let mapping = self.objects.get(&(Object::Mapping, start))?;
            (address - start < bytes).then_some(mapping.owner)
        };
        let key = self.handles.get(&handle).copied().or_else(mapped);
        match key.and_then(|key| self.objects.get_mut(&(Object::Physical, key))) {
            Some(physical) => {
                physical.references += 1;
                self.handles.insert(handle, physical.key);
            }
            None => report(Change::Unknown { key: handle.0 }),
        }
    }

    fn new_object(event: &Event, object: Object, key: u64, bytes: u64, owner: u64) -> LiveObject {
        LiveObject {
            object,
            key,
            value: event.words[0],
            bytes,
            device: event.device,
            owner,
            stream: 0,
            born: event.seq,
            born_ticks: event.time,
            stack: event.stack,
            thread: event.thread,
            references: 1,
            mappings: 0,
        }
    }

    fn insert(&mut self, object: LiveObject, report: &mut dyn FnMut(Change)) {
        if let Some(former) = self.objects.insert((object.object, object.key), object) {
            report(Change::Died {
                object: former,
                implicit: true,
            });
        }
        report(Change::Born(object));
    }

    fn create(&mut self, object: Object, event: &Event, report: &mut dyn FnMut(Change)) {
        let [value, bytes, owner, stream] = event.words;
        let (key, bytes, owner) = match object {
            Object::Physical => (event.seq.0, bytes, 0),
            Object::Context | Object::Pool => (value, 0, 0),
            Object::DeviceAllocation
            | Object::ManagedAllocation
            | Object::PoolBlock
            | Object::PinnedHost
            | Object::RegisteredHost => (value, bytes, owner),
            Object::Reservation | Object::Mapping | Object::Block => (value, bytes, 0),
        };
        if object == Object::Physical
            && let Some(former) = self.handles.insert(Handle(value), key)
        {
            self.forget_handle(former, report);
        }
        // The three kinds of linear memory share one address space: a free that we missed must not leave a ghost.
        if LINEAR.contains(&object) {
            for other in LINEAR.into_iter().filter(|&other| other != object) {
                if let Some(former) = self.objects.remove(&(other, key)) {
                    report(Change::Died {
                        object: former,
                        implicit: true,
                    });
                }
            }
        }
        let mut born = Self::new_object(event, object, key, bytes, owner);
        // A pool may be of another device than the one that is current where it is used.
        if object == Object::PoolBlock {
            born.stream = stream;
            if let Some(pool) = self.objects.get(&(Object::Pool, owner)) {
                born.device = pool.device;
            }
        }
        self.insert(born, report);
    }

    fn map(
        &mut self,
        event: &Event,
        address: u64,
        bytes: u64,
        handle: Handle,
        report: &mut dyn FnMut(Change),
    ) {
        self.displace(address, bytes, report);
        let physical = self.handles.get(&handle).copied();
        let owner = physical.unwrap_or(0);
        let mut mapping = Self::new_object(event, Object::Mapping, address, bytes, owner);
        match physical.and_then(|key| self.objects.get_mut(&(Object::Physical, key))) {
            Some(physical) => {
                physical.mappings += 1;
                // A call that maps names no device: the memory is where it was made.
                mapping.device = physical.device;
            }
            None => report(Change::Unknown { key: handle.0 }),
        }
        self.mappings.insert(address, bytes);
        self.insert(mapping, report);
    }

    /// The driver maps nothing over a mapping: those that lie there were unmapped out of our sight.
    fn displace(&mut self, address: u64, bytes: u64, report: &mut dyn FnMut(Change)) {
        let end = address.saturating_add(bytes);
        let there: Vec<u64> = self
            .mappings
            .range(..end.max(address.saturating_add(1)))
            .rev()
            .take_while(|&(&start, &bytes)| {
                start >= address || start.saturating_add(bytes) > address
            })
            .map(|(&start, _)| start)
            .collect();
        for start in there {
            self.mappings.remove(&start);
            let Some(mapping) = self.objects.remove(&(Object::Mapping, start)) else {
                continue;
            };
            report(lost_sight_of(mapping));
            if let Some(physical) = self.objects.get_mut(&(Object::Physical, mapping.owner)) {
                physical.mappings = physical.mappings.saturating_sub(1);
            }
            if let Some(physical) = self.bury_physical(mapping.owner) {
                report(lost_sight_of(physical));
            }
        }
    }

    /// The driver gives a handle again only when nobody holds it: all references to its former memory were given up.
    fn forget_handle(&mut self, key: u64, report: &mut dyn FnMut(Change)) {
        if let Some(physical) = self.objects.get_mut(&(Object::Physical, key)) {
            physical.references = 0;
        }
        if let Some(physical) = self.bury_physical(key) {
            report(lost_sight_of(physical));
        }
    }

    fn unmap(
        &mut self,
        address: u64,
        bytes: u64,
        removal: &mut Removal,
        report: &mut dyn FnMut(Change),
    ) {
        let end = address.saturating_add(bytes);
        let inside: Vec<u64> = self
            .mappings
            .range(address..end)
            .map(|(&start, _)| start)
            .collect();
        if inside.is_empty() {
            report(Change::Unknown { key: address });
        }
        for start in inside {
            self.mappings.remove(&start);
            let Some(mapping) = self.objects.remove(&(Object::Mapping, start)) else {
                continue;
            };
            removal.gone.push(mapping);
            if let Some(physical) = self.objects.get_mut(&(Object::Physical, mapping.owner)) {
                physical.mappings = physical.mappings.saturating_sub(1);
            }
            removal.gone.extend(self.bury_physical(mapping.owner));
        }
    }

    fn drop_reference(
        &mut self,
        handle: Handle,
        removal: &mut Removal,
        report: &mut dyn FnMut(Change),
    ) {
        let Some(&key) = self.handles.get(&handle) else {
            report(Change::Unknown { key: handle.0 });
            return;
        };
        let Some(physical) = self.objects.get_mut(&(Object::Physical, key)) else {
            return;
        };
        physical.references = physical.references.saturating_sub(1);
        removal.dropped.push((handle, key));
        if physical.references == 0 {
            self.handles.remove(&handle);
        }
        removal.gone.extend(self.bury_physical(key));
    }

    /// Physical memory dies when nothing refers to it: neither a handle nor a mapping.
    fn bury_physical(&mut self, key: u64) -> Option<LiveObject> {
        let key = (Object::Physical, key);
        let object = self.objects.get(&key)?;
        if object.references > 0 || object.mappings > 0 {
            return None;
        }
        self.objects.remove(&key)
    }

    fn retain_primary(&mut self, event: &Event, report: &mut dyn FnMut(Change)) {
        let context = event.words[0];
        match self.objects.get_mut(&(Object::Context, context)) {
            Some(object) if self.primaries.get(&event.device) == Some(&context) => {
                object.references += 1
            }
            _ => {
                // What allocated in it already held it out of our sight: a reference that no release we see gives up.
                let held = self
                    .objects
                    .values()
                    .any(|object| is_owned(object, context));
                self.primaries.insert(event.device, context);
                let mut born = Self::new_object(event, Object::Context, context, 0, 0);
                born.references += u32::from(held);
                self.insert(born, report);
            }
        }
    }

    fn release_primary(
        &mut self,
        device: DeviceOrdinal,
        removal: &mut Removal,
        report: &mut dyn FnMut(Change),
    ) {
        let Some(&context) = self.primaries.get(&device) else {
            report(Change::Unknown { key: 0 });
            return;
        };
        removal.released = Some(device);
        let Some(object) = self.objects.get_mut(&(Object::Context, context)) else {
            return;
        };
        object.references = object.references.saturating_sub(1);
        if object.references == 0 {
            self.end_context(context, removal);
        }
    }

    /// A context takes its allocations along. Physical memory, reservations and pools are not owned by a context.
    fn end_context(&mut self, context: u64, removal: &mut Removal) {
        let is_itself =
            |object: &LiveObject| object.object == Object::Context && object.key == context;
        removal.gone.extend(
            self.objects
                .extract_if(|_, object| is_itself(object) || is_owned(object, context))
                .map(|(_, object)| object),
        );
        removal.gone.sort_by_key(|object| object.born);
        if let Some(device) = self
            .primaries
            .iter()
            .find_map(|(&device, &primary)| (primary == context).then_some(device))
        {
            self.primaries.remove(&device);
            removal.primary = Some(device);
        }
    }

    fn undo(&mut self, event: &Event, report: &mut dyn FnMut(Change)) {
        let begin = Seq(event.words[0]);
        let Some(removal) = self
            .removals
            .remove(&event.thread)
            .filter(|removal| removal.begin == begin)
        else {
            return;
        };
        // Physical memory and contexts come back first, with the counts at which they died; what was taken from the counts
        // follows.
        for &object in &removal.gone {
            // If the call failed nobody can have been given the same address or handle meanwhile; input that says so must
            // not make an object vanish without a word.
            if object.object == Object::Mapping {
                self.displace(object.key, object.bytes, report);
            }
            for taken in LINEAR
                .into_iter()
                .filter(|_| LINEAR.contains(&object.object))
                .chain([object.object])
            {
                if let Some(former) = self.objects.remove(&(taken, object.key)) {
                    report(Change::Died {
                        object: former,
                        implicit: true,
                    });
                }
            }
            self.objects.insert((object.object, object.key), object);
            match object.object {
                Object::Mapping => drop(self.mappings.insert(object.key, object.bytes)),
                Object::Context if removal.primary == Some(object.device) => {
                    self.primaries.insert(object.device, object.key);
                }
                _ => {}
            }
        }
        for mapping in removal
            .gone
            .iter()
            .filter(|object| object.object == Object::Mapping)
        {
            if let Some(physical) = self.objects.get_mut(&(Object::Physical, mapping.owner)) {
                physical.mappings += 1;
            }
        }
        for (handle, key) in removal.dropped {
            self.handles.insert(handle, key);
            if let Some(object) = self.objects.get_mut(&(Object::Physical, key)) {
                object.references += 1;
            }
        }
        if let Some(context) = removal
            .released
            .and_then(|device| self.primaries.get(&device))
            && let Some(object) = self.objects.get_mut(&(Object::Context, *context))
        {
            object.references += 1;
        }
        for object in removal.gone {
            if let Some(&restored) = self.objects.get(&(object.object, object.key)) {
                report(Change::Restored(restored));
            }
        }
    }
}

/// Whether an allocation belongs to a context: it goes with it. Nothing is known to belong to context 0.
fn is_owned(object: &LiveObject, context: u64) -> bool {
    let is_memory = matches!(
        object.object,
        Object::DeviceAllocation
            | Object::ManagedAllocation
            | Object::PinnedHost
            | Object::RegisteredHost
    );
    is_memory && object.owner == context && context != 0
}

/// The death of an object whose end was not seen.
const fn lost_sight_of(object: LiveObject) -> Change {
    Change::Died {
        object,
        implicit: true,
    }
}

#[cfg(test)]
mod tests;
