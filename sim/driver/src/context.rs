//! Contexts: the primary one of each device, created ones, and each thread's
//! stack of current ones.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::abi::{In, Out, Outcome, Status};
use crate::entry::entry;
use crate::ledger::DeviceId;
use crate::machine::Machine;

/// Most contexts that one thread can have pushed.
const STACK_DEPTH: usize = 64;

/// What each `CUlimit` is by default, in its order: bytes of a thread's stack,
/// of the printing buffer and of the heap, depth and number of launches from
/// the device, bytes fetched at a time, and bytes of persisting cache.
const LIMITS: [usize; 7] = [1024, 1 << 20, 8 << 20, 2, 2048, 64, 0];

struct Stack {
    handles: [Cell<u64>; STACK_DEPTH],
    depth: Cell<usize>,
}

thread_local! {
    // Without a destructor: calls come in while a thread ends, too.
    static STACK: Stack = const {
        Stack { handles: [const { Cell::new(0) }; STACK_DEPTH], depth: Cell::new(0) }
    };
}

impl Stack {
    fn top(&self) -> Option<u64> {
        self.depth
            .get()
            .checked_sub(1)
            .map(|index| self.handles[index].get())
    }

    fn push(&self, handle: u64) -> Outcome {
        let depth = self.depth.get();
        self.handles
            .get(depth)
            .ok_or(Status::INVALID_VALUE)?
            .set(handle);
        self.depth.set(depth + 1);
        Ok(())
    }

    fn pop(&self) -> Option<u64> {
        let top = self.top()?;
        self.depth.set(self.depth.get() - 1);
        Some(top)
    }
}

/// A context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) device: DeviceId,
    pub(crate) primary: bool,
    /// A primary context is there from the first retain to a reset or the last
    /// release; a created one while it exists.
    pub(crate) active: bool,
    retained: u64,
    flags: u32,
    /// What it takes on its device by itself.
    pub(crate) charged_bytes: u64,
}

/// The context that a call runs in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Current {
    pub(crate) handle: u64,
    pub(crate) device: DeviceId,
}

/// All contexts by handle.
#[derive(Default)]
pub(crate) struct Contexts {
    all: BTreeMap<u64, Context>,
    primaries: Vec<u64>,
    /// Handles of created contexts that are gone: still on some thread's stack.
    destroyed: std::collections::BTreeSet<u64>,
    /// Limits that were set, by context and `CUlimit`.
    limits: BTreeMap<(u64, u32), usize>,
}

impl Contexts {
    /// Adds the primary context of the next device, not yet active.
    pub(crate) fn add_primary(&mut self, device: DeviceId, handle: u64) {
        let context = Context {
            device,
            primary: true,
            active: false,
            retained: 0,
            flags: 0,
            charged_bytes: 0,
        };
        self.all.insert(handle, context);
        self.primaries.push(handle);
    }

    /// Every context that is there.
    pub(crate) fn active(&self) -> impl Iterator<Item = (u64, &Context)> {
        self.all
            .iter()
            .filter(|(_, context)| context.active)
            .map(|(handle, c)| (*handle, c))
    }

    /// The context that calls of this thread run in.
    pub(crate) fn current(&self) -> Outcome<Current> {
        let handle = STACK.with(Stack::top).ok_or(Status::INVALID_CONTEXT)?;
        let context = self.get(handle)?;
        Ok(Current {
            handle,
            device: context.device,
        })
    }

    fn get(&self, handle: u64) -> Outcome<&Context> {
        match self.all.get(&handle) {
            Some(context) if context.active => Ok(context),
            Some(_) => Err(Status::CONTEXT_IS_DESTROYED),
            None if self.destroyed.contains(&handle) => Err(Status::CONTEXT_IS_DESTROYED),
            None => Err(Status::INVALID_CONTEXT),
        }
    }

    fn primary(&mut self, device: DeviceId) -> (u64, &mut Context) {
        let handle = self.primaries[device.index()];
        match self.all.get_mut(&handle) {
            Some(context) => (handle, context),
            None => unreachable!("a primary context stays in the list"),
        }
    }
}

impl Machine {
    /// Makes a context active, at the price that the configuration states.
    fn activate_primary(&mut self, device: DeviceId) -> Outcome {
        if self.contexts.primary(device).1.active {
            return Ok(());
        }
        let bytes = crate::config::get().context_bytes;
        self.ledger.charge(device, bytes)?;
        let context = self.contexts.primary(device).1;
        context.active = true;
        context.charged_bytes = bytes;
        Ok(())
    }

    /// Ends a context: what it owns goes with it. Pools and the physical memory
    /// of `cuMemCreate` belong to the device and stay.
    fn end_context(&mut self, handle: u64) {
        self.unload_modules_of(handle);
        self.free_memory_of(handle);
        self.streams.end_context(handle);
        self.events.end_context(handle);
        if let Some(context) = self.contexts.all.get_mut(&handle) {
            let (device, bytes) = (context.device, context.charged_bytes);
            context.active = false;
            context.charged_bytes = 0;
            if !context.primary {
                self.contexts.all.remove(&handle);
                self.contexts.destroyed.insert(handle);
            }
            self.ledger.discharge(device, bytes);
        }
    }

    fn create_context(&mut self, out: &Out<u64>, flags: u32, ordinal: i32) -> Outcome {
        out.required()?;
        let device = self.device(ordinal)?;
        let charged_bytes = crate::config::get().context_bytes;
        let handle = self.new_handle();
        self.ledger.charge(device, charged_bytes)?;
        if let Err(status) = STACK.with(|stack| stack.push(handle)) {
            self.ledger.discharge(device, charged_bytes);
            return Err(status);
        }
        let context = Context {
            device,
            primary: false,
            active: true,
            retained: 0,
            flags,
            charged_bytes,
        };
        self.contexts.all.insert(handle, context);
        out.set(handle)
    }

    fn release_primary(&mut self, ordinal: i32) -> Outcome {
        let device = self.device(ordinal)?;
        let (handle, context) = self.contexts.primary(device);
        context.retained = context
            .retained
            .checked_sub(1)
            .ok_or(Status::INVALID_CONTEXT)?;
        if context.retained == 0 {
            self.end_context(handle);
        }
        Ok(())
    }

    fn reset_primary(&mut self, ordinal: i32) -> Outcome {
        let device = self.device(ordinal)?;
        let handle = self.contexts.primary(device).0;
        self.end_context(handle);
        Ok(())
    }

    fn set_primary_flags(&mut self, ordinal: i32, flags: u32, may_be_active: bool) -> Outcome {
        let device = self.device(ordinal)?;
        let context = self.contexts.primary(device).1;
        if context.active && !may_be_active {
            return Err(Status::PRIMARY_CONTEXT_ACTIVE);
        }
        context.flags = flags;
        Ok(())
    }
}

entry! {
    /// Takes a reference to the device's primary context and wakes it.
    fn cuDevicePrimaryCtxRetain(machine; out: Out<u64>, device: i32) {
        out.required()?;
        let device = machine.device(device)?;
        machine.activate_primary(device)?;
        let (handle, context) = machine.contexts.primary(device);
        context.retained += 1;
        out.set(handle)
    }

    /// Drops a reference; the last one ends the context.
    fn cuDevicePrimaryCtxRelease_v2(machine; device: i32) {
        machine.release_primary(device)
    }

    /// The older name of the same.
    fn cuDevicePrimaryCtxRelease(machine; device: i32) {
        machine.release_primary(device)
    }

    /// Ends the primary context whatever its references, which stay.
    fn cuDevicePrimaryCtxReset_v2(machine; device: i32) {
        machine.reset_primary(device)
    }

    /// The older name of the same.
    fn cuDevicePrimaryCtxReset(machine; device: i32) {
        machine.reset_primary(device)
    }

    /// Flags of the primary context, and whether it is there.
    fn cuDevicePrimaryCtxGetState(machine; device: i32, flags: Out<u32>, active: Out<i32>) {
        flags.required()?;
        active.required()?;
        let device = machine.device(device)?;
        let context = machine.contexts.primary(device).1;
        flags.set(context.flags)?;
        active.set(i32::from(context.active))
    }

    /// Sets the flags at any time.
    fn cuDevicePrimaryCtxSetFlags_v2(machine; device: i32, flags: u32) {
        machine.set_primary_flags(device, flags, true)
    }

    /// Sets the flags before the context is there.
    fn cuDevicePrimaryCtxSetFlags(machine; device: i32, flags: u32) {
        machine.set_primary_flags(device, flags, false)
    }

    /// Creates a context and makes it current.
    fn cuCtxCreate_v2(machine; out: Out<u64>, flags: u32, device: i32) {
        machine.create_context(&out, flags, device)
    }

    /// The same; execution affinity means nothing here.
    fn cuCtxCreate_v3(machine; out: Out<u64>, _affinity: u64, _count: i32, flags: u32, device: i32) {
        machine.create_context(&out, flags, device)
    }

    /// The same; the parameters (affinity, graphics) mean nothing here.
    fn cuCtxCreate_v4(machine; out: Out<u64>, _parameters: u64, flags: u32, device: i32) {
        machine.create_context(&out, flags, device)
    }

    /// Ends a created context and all that it owns.
    fn cuCtxDestroy_v2(machine; context: u64) {
        if machine.contexts.get(context)?.primary {
            return Err(Status::INVALID_CONTEXT);
        }
        machine.end_context(context);
        STACK.with(|stack| {
            if stack.top() == Some(context) {
                stack.pop();
            }
        });
        Ok(())
    }

    /// Replaces this thread's current context; NULL takes it away.
    fn cuCtxSetCurrent(machine; context: u64) {
        if context == 0 {
            STACK.with(Stack::pop);
            return Ok(());
        }
        machine.contexts.get(context)?;
        STACK.with(|stack| {
            stack.pop();
            stack.push(context)
        })
    }

    /// This thread's current context, or NULL.
    fn cuCtxGetCurrent(_; out: Out<u64>) {
        out.set(STACK.with(Stack::top).unwrap_or(0))
    }

    /// Puts a context on top of this thread's stack.
    fn cuCtxPushCurrent_v2(machine; context: u64) {
        machine.contexts.get(context)?;
        STACK.with(|stack| stack.push(context))
    }

    /// Takes the top of this thread's stack; the answer is optional.
    fn cuCtxPopCurrent_v2(_; out: Out<u64>) {
        let popped = STACK.with(Stack::pop).ok_or(Status::INVALID_CONTEXT)?;
        out.set_if_wanted(popped);
        Ok(())
    }

    /// The current context's device.
    fn cuCtxGetDevice(machine; out: Out<i32>) {
        out.required()?;
        let device = machine.contexts.current()?.device;
        out.set(machine.visible().ordinal_or_invalid(device))
    }

    /// The current context's flags.
    fn cuCtxGetFlags(machine; out: Out<u32>) {
        out.required()?;
        let current = machine.contexts.current()?;
        out.set(machine.contexts.get(current.handle)?.flags)
    }

    /// A number that no other context of this process ever has.
    fn cuCtxGetId(machine; context: u64, out: Out<u64>) {
        out.required()?;
        let handle = if context == 0 { machine.contexts.current()?.handle } else { context };
        machine.contexts.get(handle)?;
        out.set(handle)
    }

    /// The interface's version; NULL stands for the current context.
    fn cuCtxGetApiVersion(machine; context: u64, out: Out<u32>) {
        out.required()?;
        let handle = if context == 0 { machine.contexts.current()?.handle } else { context };
        machine.contexts.get(handle)?;
        out.set(3020)
    }

    /// Waits for all streams of the context, and lets pools shrink.
    fn cuCtxSynchronize(machine;) {
        let current = machine.contexts.current()?;
        let end = machine.streams.context_end(current.handle);
        machine.clock.skip_to(end);
        machine.trim_pools_at_synchronisation(current.device);
        Ok(())
    }

    /// Stream priorities: none to five steps higher.
    fn cuCtxGetStreamPriorityRange(machine; least: Out<i32>, greatest: Out<i32>) {
        machine.contexts.current()?;
        least.set_if_wanted(0);
        greatest.set_if_wanted(-5);
        Ok(())
    }

    /// Peers see each other's memory anyway.
    fn cuCtxEnablePeerAccess(machine; context: u64, flags: u32) {
        machine.contexts.current()?;
        machine.contexts.get(context)?;
        if flags == 0 { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    /// They go on to do so.
    fn cuCtxDisablePeerAccess(machine; context: u64) {
        machine.contexts.current()?;
        machine.contexts.get(context).map(drop)
    }

    /// A limit (`CUlimit`) of the current context.
    fn cuCtxGetLimit(machine; out: Out<usize>, limit: u32) {
        out.required()?;
        let current = machine.contexts.current()?;
        let default = *LIMITS.get(limit as usize).ok_or(Status::UNSUPPORTED_LIMIT)?;
        let set = machine.contexts.limits.get(&(current.handle, limit));
        out.set(set.copied().unwrap_or(default))
    }

    /// Sets a limit, which limits nothing here.
    fn cuCtxSetLimit(machine; limit: u32, value: usize) {
        let current = machine.contexts.current()?;
        LIMITS.get(limit as usize).ok_or(Status::UNSUPPORTED_LIMIT)?;
        machine.contexts.limits.insert((current.handle, limit), value);
        Ok(())
    }

    /// Refused, always: private tables are not part of the public interface.
    free fn cuGetExportTable(_table: Out<u64>, _id: In<std::ffi::c_void>) {
        cuGetExportTable::TALLY.name_once("is refused: private tables are not served");
        Err(Status::NOT_FOUND)
    }
}
