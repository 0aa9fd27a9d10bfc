//! A program that makes random memory calls from four threads: all families, in legal orders, with calls among them that fail.
//!
//! `gpumem-random-ops SEED OPERATIONS` needs two devices. Contexts and memory of the two devices are laid out so that every
//! order that can be is legal: what one thread destroys, no other uses at that moment. At the end much is left alive. It
//! prints one line of JSON: the pools that the driver keeps and the program does not own (`pools`), and how many calls
//! succeeded and failed by its own count.

mod driver;
mod random;
mod virtual_memory;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use driver::{Driver, Location, PoolProps};
use random::Random;
use virtual_memory::VirtualMemory;

const SUCCESS: u32 = 0;
const THREADS: u64 = 4;
/// A thread gives up some memory of its kind beyond so many objects.
const CROWD: usize = 200;
/// More than the devices have.
const TOO_MUCH: usize = 1 << 46;

/// What the threads share.
struct Shared {
    driver: Driver,
    /// The primary context of device 0, retained until the end.
    primary: u64,
    /// Memory that any thread may free: a free of another thread's memory is as good as one's own.
    memory: Mutex<Vec<u64>>,
    succeeded: AtomicU64,
    failed: AtomicU64,
}

impl Shared {
    /// Counts a call; true if it succeeded.
    fn ok(&self, status: u32) -> bool {
        // Relaxed: a count of its own.
        let count = if status == SUCCESS {
            &self.succeeded
        } else {
            &self.failed
        };
        count.fetch_add(1, Ordering::Relaxed);
        status == SUCCESS
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u64>> {
        self.memory.lock().expect("no thread panics")
    }
}

/// One thread's own.
struct Worker<'a> {
    shared: &'a Shared,
    random: Random,
    /// Whether this thread is the one that retains and releases the primary context of device 1.
    keeps_primary: bool,
    /// How often it is retained.
    retained: usize,
    /// Contexts on device 1 that this thread created.
    contexts: Vec<u64>,
    pools: Vec<u64>,
    /// Pools that were destroyed; blocks may keep them.
    destroyed_pools: Vec<u64>,
    virtual_memory: VirtualMemory,
    /// Pinned host memory.
    pinned: Vec<u64>,
    /// Memory of this program's own that is pinned.
    registered: Vec<Box<[u8]>>,
}

impl Worker<'_> {
    fn step(&mut self) {
        match self.random.below(100) {
            0..27 => self.allocate(),
            27..55 => self.free(),
            55..60 => self.pool(),
            60..65 => self.context(),
            65..67 => self.mistake(),
            67..73 => self.host(),
            _ => self.virtual_memory.step(self.shared, &mut self.random),
        }
    }

    /// Memory of the primary context of device 0.
    fn allocate(&mut self) {
        let driver = &self.shared.driver;
        let bytes = 1 + self.random.below(256 << 10);
        let mut address = 0;
        let answer = &mut address;
        // SAFETY: the answers go to local variables; a pool is one of ours that is alive.
        let status = unsafe {
            match self.random.below(8) {
                0 | 1 => (driver.alloc)(answer, bytes),
                2 => {
                    let mut pitch = 0;
                    let (width, height) = (1 + bytes % 5000, 1 + self.random.below(40));
                    (driver.alloc_pitch)(answer, &mut pitch, width, height, 4)
                }
                3 => (driver.alloc_managed)(answer, bytes, 1),
                4 => (driver.alloc_async)(answer, bytes, 0),
                5 => (driver.alloc_async_ptsz)(answer, bytes, 0),
                both => match self.pools.last() {
                    Some(&pool) if both == 6 => (driver.alloc_from_pool)(answer, bytes, pool, 0),
                    Some(&pool) => (driver.alloc_from_pool_ptsz)(answer, bytes, pool, 0),
                    None => (driver.alloc)(answer, bytes),
                },
            }
        };
        if self.shared.ok(status) {
            self.shared.lock().push(address);
        }
    }

    fn free(&mut self) {
        let mut memory = self.shared.lock();
        if memory.len() < CROWD && self.random.once_in(2) {
            return;
        }
        let Some(address) = self.random.take(&mut memory) else {
            return;
        };
        drop(memory);
        let driver = &self.shared.driver;
        // SAFETY: plain numbers. All three functions free memory of every kind.
        let status = unsafe {
            match self.random.below(3) {
                0 => (driver.free)(address),
                1 => (driver.free_async)(address, 0),
                _ => (driver.free_async_ptsz)(address, 0),
            }
        };
        if !self.shared.ok(status) {
            // It lives on.
            self.shared.lock().push(address);
        }
    }

    fn pool(&mut self) {
        let driver = &self.shared.driver;
        match self.random.below(4) {
            0 if self.pools.len() < 8 => {
                let properties = PoolProps {
                    kind: 1,
                    handle_types: 0,
                    location: Location { kind: 1, id: 0 },
                    security: 0,
                    max_bytes: 0,
                    reserved: [0; 56],
                };
                let mut pool = 0;
                // SAFETY: the properties and the answer are local variables.
                let status = unsafe { (driver.create_pool)(&mut pool, &properties) };
                if self.shared.ok(status) {
                    self.pools.push(pool);
                }
            }
            1 if self.pools.len() > 2 => {
                if let Some(pool) = self.random.take(&mut self.pools) {
                    // SAFETY: a plain number.
                    if self.shared.ok(unsafe { (driver.destroy_pool)(pool) }) {
                        self.destroyed_pools.push(pool);
                    } else {
                        self.pools.push(pool);
                    }
                }
            }
            _ => {
                if let Some(&pool) = self.pools.first() {
                    // SAFETY: a plain number.
                    self.shared.ok(unsafe { (driver.trim_pool)(pool, 0) });
                }
            }
        }
    }

    fn host(&mut self) {
        let driver = &self.shared.driver;
        let bytes = 1 + self.random.below(16 << 10);
        match self.random.below(4) {
            0 if self.pinned.len() < CROWD => {
                let mut address = 0;
                // SAFETY: the answer goes to a local variable.
                let status = unsafe {
                    if self.random.once_in(2) {
                        (driver.alloc_host)(&mut address, bytes, 1)
                    } else {
                        (driver.alloc_host_plain)(&mut address, bytes)
                    }
                };
                if self.shared.ok(status) {
                    self.pinned.push(address);
                }
            }
            1 => {
                if let Some(address) = self.random.take(&mut self.pinned) {
                    // SAFETY: a plain number.
                    if !self.shared.ok(unsafe { (driver.free_host)(address) }) {
                        self.pinned.push(address);
                    }
                }
            }
            2 if self.registered.len() < CROWD => {
                let mut own = vec![0u8; bytes].into_boxed_slice();
                // SAFETY: memory that lives as long as it is registered.
                let status = unsafe { (driver.register_host)(own.as_mut_ptr(), bytes, 0) };
                if self.shared.ok(status) {
                    self.registered.push(own);
                }
            }
            _ => {
                if let Some(mut own) = self.random.take(&mut self.registered) {
                    // SAFETY: memory that was registered.
                    let status = unsafe { (driver.unregister_host)(own.as_mut_ptr()) };
                    if !self.shared.ok(status) {
                        self.registered.push(own);
                    }
                }
            }
        }
    }

    /// Contexts on device 1, and memory in them that goes with them.
    fn context(&mut self) {
        let driver = &self.shared.driver;
        match self.random.below(4) {
            0 if self.contexts.len() < 4 => {
                let (mut context, answer) = (0, std::ptr::null_mut());
                // SAFETY: the answer goes to a local variable; no parameters are given.
                let status = unsafe {
                    match self.random.below(3) {
                        0 => (driver.create_context_v2)(&mut context, 0, 1),
                        1 => (driver.create_context_v3)(&mut context, answer, 0, 0, 1),
                        _ => (driver.create_context_v4)(&mut context, answer, 0, 1),
                    }
                };
                if self.shared.ok(status) {
                    self.contexts.push(context);
                    self.fill_current();
                    // SAFETY: the context that was just pushed; the answer is not wanted.
                    unsafe { (driver.pop_context)(std::ptr::null_mut()) };
                }
            }
            1 => {
                if let Some(context) = self.random.take(&mut self.contexts) {
                    // SAFETY: a plain number.
                    if !self.shared.ok(unsafe { (driver.destroy_context)(context) }) {
                        self.contexts.push(context);
                    }
                }
            }
            2 if self.keeps_primary && self.retained < 5 => {
                let mut context = 0;
                // SAFETY: the answer goes to a local variable.
                let status = unsafe { (driver.retain_primary)(&mut context, 1) };
                if self.shared.ok(status) {
                    self.retained += 1;
                    self.in_context(context);
                }
            }
            3 if self.retained > 0 => {
                // SAFETY: a plain number.
                if self.shared.ok(unsafe { (driver.release_primary)(1) }) {
                    self.retained -= 1;
                }
            }
            _ => {
                if let Some(&context) = self.contexts.last() {
                    self.in_context(context);
                }
            }
        }
    }

    fn in_context(&mut self, context: u64) {
        let driver = &self.shared.driver;
        // SAFETY: a live context, and back to the one that every thread begins with.
        unsafe {
            (driver.set_context)(context);
            self.fill_current();
            (driver.set_context)(self.shared.primary);
        }
    }

    /// A few allocations that nobody frees but the end of their context.
    fn fill_current(&mut self) {
        let driver = &self.shared.driver;
        for _ in 0..1 + self.random.below(3) {
            let (mut address, bytes) = (0, 1 + self.random.below(8 << 10));
            // SAFETY: the answer goes to a local variable.
            let status = unsafe {
                match self.random.below(6) {
                    0 => (driver.alloc_managed)(&mut address, bytes, 1),
                    1 => (driver.alloc_host)(&mut address, bytes, 0),
                    _ => (driver.alloc)(&mut address, bytes),
                }
            };
            self.shared.ok(status);
        }
    }

    /// Calls that a driver refuses.
    fn mistake(&mut self) {
        let driver = &self.shared.driver;
        let mut answer = 0;
        // SAFETY: plain numbers, and answers that go to local variables or nowhere. No such address or handle is ever given.
        let status = unsafe {
            match self.random.below(13) {
                10 => (driver.alloc_host)(&mut answer, 100, 99),
                11 => (driver.free_host)(0x77),
                12 => (driver.unregister_host)(std::ptr::without_provenance_mut(0x77)),
                0 => (driver.alloc)(&mut answer, 0),
                1 => (driver.alloc)(&mut answer, TOO_MUCH),
                2 => (driver.alloc_pitch)(&mut answer, &mut 0, 100, 100, 3),
                3 => (driver.alloc_managed)(&mut answer, 100, 7),
                4 => (driver.free)(0x77),
                5 => (driver.free_async)(0x77, 0),
                6 => (driver.alloc_from_pool)(&mut answer, 100, 0x77, 0),
                7 => (driver.destroy_pool)(0x77),
                8 => (driver.destroy_context)(0x77),
                _ => (driver.alloc)(std::ptr::null_mut(), 100),
            }
        };
        assert_ne!(status, SUCCESS, "a mistake went through");
        self.shared.ok(status);
    }
}

fn main() {
    let mut arguments = std::env::args()
        .skip(1)
        .map(|word| word.parse::<u64>().expect("a number"));
    let (Some(seed), Some(operations)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: gpumem-random-ops SEED OPERATIONS");
        std::process::exit(2);
    };
    let driver = Driver::open();
    let mut primary = 0;
    // SAFETY: the answer goes to a local variable.
    unsafe {
        assert_eq!((driver.init)(0), SUCCESS);
        assert_eq!((driver.retain_primary)(&mut primary, 0), SUCCESS);
    }
    let shared = Shared {
        driver,
        primary,
        memory: Mutex::default(),
        succeeded: AtomicU64::new(0),
        failed: AtomicU64::new(0),
    };
    let work = |number: u64| {
        // SAFETY: a live context.
        unsafe { (shared.driver.set_context)(primary) };
        let mut worker = Worker {
            shared: &shared,
            random: Random::new(seed * THREADS + number),
            keeps_primary: number == 0,
            retained: 0,
            contexts: Vec::new(),
            pools: Vec::new(),
            destroyed_pools: Vec::new(),
            virtual_memory: VirtualMemory::default(),
            pinned: Vec::new(),
            registered: Vec::new(),
        };
        for _ in 0..operations / THREADS {
            worker.step();
        }
        // Still registered when the driver is asked what is.
        std::mem::forget(worker.registered);
        worker.destroyed_pools
    };
    let mut pools = std::thread::scope(|scope| {
        let threads: [u64; THREADS as usize] = std::array::from_fn(|number| number as u64);
        let threads = threads.map(|number| scope.spawn(move || work(number)));
        threads
            .map(|thread| thread.join().expect("no thread panics"))
            .concat()
    });
    for device in [0, 1] {
        let mut pool = 0;
        // SAFETY: the answer goes to a local variable.
        let status = unsafe { (shared.driver.default_pool)(&mut pool, device) };
        assert_eq!(status, SUCCESS);
        pools.push(pool);
    }
    println!(
        "{{\"pid\":{},\"pools\":{pools:?},\"succeeded\":{},\"failed\":{}}}",
        std::process::id(),
        shared.succeeded.into_inner(),
        shared.failed.into_inner()
    );
}
