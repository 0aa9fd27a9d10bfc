//! Everything that lives in the simulated machine, behind one lock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::abi::{Outcome, Status};
use crate::clock::Clock;
use crate::config;
use crate::context::Contexts;
use crate::event::Events;
use crate::graph::Graphs;
use crate::ipc::Imports;
use crate::launch::HostCall;
use crate::ledger::{DeviceId, Ledger};
use crate::memory::Memory;
use crate::module::Modules;
use crate::notes::SmallCopy;
use crate::pool::Pools;
use crate::stream::Streams;
use crate::visible::Visible;
use crate::vmm::Vmm;

/// The devices and all objects on them.
pub(crate) struct Machine {
    /// `cuInit` was called, and there was a device to see.
    pub(crate) initialised: bool,
    /// Found at the first `cuInit`, which a program may set the environment for.
    visible: Option<Visible>,
    pub(crate) ledger: Ledger,
    pub(crate) contexts: Contexts,
    pub(crate) memory: Memory,
    pub(crate) pools: Pools,
    pub(crate) vmm: Vmm,
    pub(crate) clock: Clock,
    pub(crate) streams: Streams,
    pub(crate) events: Events,
    pub(crate) graphs: Graphs,
    pub(crate) modules: Modules,
    pub(crate) imports: Imports,
    /// Functions of the program that the running call must call when it has
    /// given back the lock.
    pub(crate) host_calls: Vec<HostCall>,
    /// What the running call must note when it has given back the lock.
    pub(crate) small_copy: Option<SmallCopy>,
    next_handle: u64,
}

/// First handle; high enough that no handle is taken for a small number.
const FIRST_HANDLE: u64 = 0x5000_0000_1000;
/// Distance of handles, as that of heap objects.
const HANDLE_STEP: u64 = 0x10;

static FORKED: AtomicBool = AtomicBool::new(false);

/// The machine, locked. A panic elsewhere does not close it: the program must
/// end with a truth.
pub(crate) fn lock() -> MutexGuard<'static, Machine> {
    static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| Mutex::new(Machine::new()));
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// This process was forked from one that had called `cuInit`.
pub(crate) fn forked() -> bool {
    // Relaxed: written before the child's first instruction of its own.
    FORKED.load(Ordering::Relaxed)
}

impl Machine {
    fn new() -> Self {
        let config = config::get();
        let mut machine = Self {
            initialised: false,
            visible: None,
            ledger: Ledger::new(
                config.devices,
                config.memory_bytes,
                config.machine.as_deref(),
            ),
            contexts: Contexts::default(),
            memory: Memory::default(),
            pools: Pools::default(),
            vmm: Vmm::default(),
            clock: Clock::new(),
            streams: Streams::default(),
            events: Events::default(),
            graphs: Graphs::default(),
            modules: Modules::default(),
            imports: Imports::default(),
            host_calls: Vec::new(),
            small_copy: None,
            next_handle: FIRST_HANDLE,
        };
        for device in machine.ledger.devices() {
            let handle = machine.new_handle();
            machine.contexts.add_primary(device, handle);
            let handle = machine.new_handle();
            machine.pools.add_default(device, handle);
        }
        machine
    }

    /// A handle that was never given before, so that a stale one is known.
    pub(crate) fn new_handle(&mut self) -> u64 {
        let handle = self.next_handle;
        self.next_handle += HANDLE_STEP;
        handle
    }

    /// The device that the program knows by an ordinal; else `INVALID_DEVICE`.
    pub(crate) fn device(&self, ordinal: i32) -> Outcome<DeviceId> {
        let device = self.visible().device(ordinal);
        device.ok_or(Status::INVALID_DEVICE)
    }

    /// The devices that the program sees: none before `cuInit`.
    pub(crate) fn visible(&self) -> &Visible {
        static NONE: Visible = Visible::NONE;
        self.visible.as_ref().unwrap_or(&NONE)
    }

    /// Starts the machine. From now on a forked child is without it. Where no
    /// device is visible nothing starts, and the answer is `NO_DEVICE` for ever.
    pub(crate) fn initialise(&mut self) -> Outcome {
        extern "C" fn in_child() {
            // Relaxed: the child has one thread.
            FORKED.store(true, Ordering::Relaxed);
        }
        if self.initialised {
            return Ok(());
        }
        let all = self.ledger.devices();
        let visible = self
            .visible
            .get_or_insert_with(|| Visible::of_environment(all.collect()));
        if visible.devices().is_empty() {
            return Err(Status::NO_DEVICE);
        }
        self.initialised = true;
        // SAFETY: the handler stores to a static atomic and nothing else.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        Ok(())
    }
}
