//! Rings: where events wait for the drainer.
//!
//! Each thread that records has one, with a single producer (the thread) and a single consumer (the drainer). A ring is a
//! chain of 64 KiB chunks from one bounded pool, so a thread that records much takes many and one that records little takes
//! one. All of it is one mapping, made when the process wakes and never given back; its pages are touched as they are used.
//!
//! When the pool is empty the drainer has fallen behind: the hook yields a little, then gives the event up and counts it.
//! Chunks in reserve are kept for events that destroy, since a lost free would make the live map wrong for ever.

use core::cell::{Cell, UnsafeCell};
use core::mem::size_of;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use gpumem_wire::{Event, Seq, ThreadId};

use crate::record::order;
use crate::ship::drainer;

/// Threads that record at the same time.
const RINGS: usize = 2048;
/// Chunks in the pool: one for each ring, and 64 MiB for those that need more.
const CHUNKS: usize = RINGS + 1024;
const CHUNK_BYTES: usize = 64 << 10;
/// Events in a chunk; its first 64 bytes are its header.
const CHUNK_EVENTS: u32 = (CHUNK_BYTES / size_of::<Event>() - 1) as u32;
/// Chunks that only events that destroy may take.
const RESERVE: u32 = 64;
/// How long a hook waits for a chunk, in yields and in time.
const PATIENCE_NS: u64 = 2_000_000;

/// Events that were given up, since the process began.
pub(crate) struct Lost {
    /// Events that create or tell.
    pub(crate) others: AtomicU64,
    /// Events that destroy: with one of these the live map is inexact.
    pub(crate) urgent: AtomicU64,
}

impl Lost {
    /// Counts one.
    pub(crate) fn count(&self, urgent: bool) {
        let counter = if urgent { &self.urgent } else { &self.others };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Relaxed throughout: these are counters.
pub(crate) static LOST: Lost = Lost {
    others: AtomicU64::new(0),
    urgent: AtomicU64::new(0),
};
/// Set while a wait for a chunk was in vain, so that the next hooks do not wait again; cleared by the drainer.
static OVERRUN: AtomicBool = AtomicBool::new(false);

/// Set when rings run short: the drainer is to look for threads that are gone without delay.
static RINGS_WANTED: AtomicBool = AtomicBool::new(false);
/// Set while a wait for a ring was in vain; cleared when one is given back.
static CROWDED: AtomicBool = AtomicBool::new(false);

/// Whether rings run short. Asked once: the drainer then looks.
pub(crate) fn rings_are_wanted() -> bool {
    RINGS_WANTED.swap(false, Ordering::Relaxed)
}

#[repr(C, align(64))]
struct Chunk {
    /// How many events lie in it. The producer's release makes them visible to the consumer's acquire.
    published: AtomicU32,
    /// The next chunk of the chain as index + 1, 0 while this is the last. Release/acquire likewise.
    next: AtomicU32,
    unused: [u64; 7],
    events: [UnsafeCell<Event>; CHUNK_EVENTS as usize],
}

const _: () = assert!(size_of::<Chunk>() == CHUNK_BYTES);

/// One thread's ring.
#[repr(C, align(128))]
pub(crate) struct Ring {
    /// The kernel's id of the owner, 0 while the ring is free. Taken with acquire, given back with release.
    owner: AtomicU32,
    /// See [`order`].
    bound: AtomicU64,
    /// The thread's number in events.
    thread: Cell<u32>,
    // The producer's side.
    write_chunk: Cell<u32>,
    written: Cell<u32>,
    // The consumer's side, and the first chunk of the chain (index + 1), which the producer sets once.
    first: AtomicU32,
    read_chunk: Cell<u32>,
    read: Cell<u32>,
}

/// The mapping.
#[repr(C)]
pub(crate) struct Rings {
    rings: [Ring; RINGS],
    /// Free chunks, a bit each.
    free: [AtomicU64; CHUNKS / 64],
    free_count: AtomicU32,
    /// Rings below this index were in use at some time.
    used: AtomicU32,
    chunks: [Chunk; CHUNKS],
}

// SAFETY: the cells of a ring belong to its owner (the producer's side) or to the drainer (the consumer's side) alone; an
// event's cell passes from one to the other through `published`.
unsafe impl Sync for Rings {}

static RINGS_AT: AtomicPtr<Rings> = AtomicPtr::new(null_mut());

impl Rings {
    /// Makes the mapping. False if there is no memory.
    pub(crate) fn create() -> bool {
        // SAFETY: a fresh anonymous mapping. Zeroes are a valid `Rings`: all of it is integers.
        let at = unsafe {
            libc::mmap(
                null_mut(),
                size_of::<Self>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return false;
        }
        // SAFETY: the mapping above. A forked child has no use for its parent's events.
        unsafe { libc::madvise(at, size_of::<Self>(), libc::MADV_DONTFORK) };
        let rings = at.cast::<Self>();
        // SAFETY: the mapping above, which nobody else has yet.
        let fresh = unsafe { &*rings };
        for word in &fresh.free {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        fresh.free_count.store(CHUNKS as u32, Ordering::Relaxed);
        RINGS_AT.store(rings, Ordering::Release);
        true
    }

    /// The mapping, once it was made.
    pub(crate) fn get() -> Option<&'static Self> {
        // SAFETY: once set, the mapping stays for the life of the process; a forked child forgets it before it looks here.
        NonNull::new(RINGS_AT.load(Ordering::Acquire)).map(|rings| unsafe { &*rings.as_ptr() })
    }

    /// A forked child has no mapping.
    pub(crate) fn forget() {
        RINGS_AT.store(null_mut(), Ordering::Release);
        LOST.others.store(0, Ordering::Relaxed);
        LOST.urgent.store(0, Ordering::Relaxed);
        for flag in [&OVERRUN, &CROWDED, &RINGS_WANTED] {
            flag.store(false, Ordering::Relaxed);
        }
    }

    fn take_free(&self, tid: u32) -> Option<(usize, &Ring)> {
        self.rings.iter().enumerate().find(|(_, ring)| {
            ring.owner.load(Ordering::Relaxed) == 0
                && ring
                    .owner
                    .compare_exchange(0, tid, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
        })
    }

    /// All rings are taken. Some may be those of threads that are gone: the drainer is asked to look, and waited for a little.
    #[cold]
    fn wait_for_ring(&self, tid: u32) -> Option<(usize, &Ring)> {
        let since = crate::record::clock::anchor().monotonic_ns;
        while !CROWDED.load(Ordering::Relaxed) {
            RINGS_WANTED.store(true, Ordering::Relaxed);
            drainer::wake_if_asleep();
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
            if let Some(found) = self.take_free(tid) {
                return Some(found);
            }
            if crate::record::clock::anchor()
                .monotonic_ns
                .wrapping_sub(since)
                > PATIENCE_NS
            {
                CROWDED.store(true, Ordering::Relaxed);
            }
        }
        None
    }

    /// Takes a free ring for the calling thread. `None` when all are taken.
    pub(crate) fn claim(&self, tid: u32, thread: ThreadId) -> Option<&Ring> {
        let (index, ring) = self.take_free(tid).or_else(|| self.wait_for_ring(tid))?;
        if index >= RINGS / 2 {
            // Early enough that those who come next need not wait.
            RINGS_WANTED.store(true, Ordering::Relaxed);
            drainer::wake_if_asleep();
        }
        ring.bound.store(order::IDLE, Ordering::Relaxed);
        ring.thread.set(thread.0);
        ring.write_chunk.set(0);
        ring.written.set(0);
        self.used.fetch_max(index as u32 + 1, Ordering::Release);
        Some(ring)
    }

    fn chunk(&self, index_plus_one: u32) -> Option<&Chunk> {
        self.chunks.get((index_plus_one as usize).wrapping_sub(1))
    }

    /// Takes a chunk from the pool. A ring's first one is always there; further ones are, while a first one for each ring that
    /// is yet to come remains, and the reserve.
    fn acquire(&self, urgent: bool, is_first: bool) -> Option<u32> {
        let rings_to_come = (RINGS as u32).saturating_sub(self.used.load(Ordering::Relaxed));
        let keep = match (is_first, urgent) {
            (true, _) => 0,
            (false, true) => rings_to_come,
            (false, false) => rings_to_come + RESERVE,
        };
        self.free_count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
                (count > keep).then(|| count - 1)
            })
            .ok()?;
        // A chunk was set aside for us by the count, so some bit is set or about to be.
        loop {
            for (at, word) in self.free.iter().enumerate() {
                let bits = word.load(Ordering::Relaxed);
                if bits == 0 {
                    continue;
                }
                let bit = bits.trailing_zeros();
                // Acquire pairs with the release below: the drainer has finished reading the chunk.
                if word.fetch_and(!(1 << bit), Ordering::Acquire) & (1 << bit) != 0 {
                    let index = at as u32 * 64 + bit;
                    let chunk = self.chunks.get(index as usize)?;
                    chunk.published.store(0, Ordering::Relaxed);
                    chunk.next.store(0, Ordering::Relaxed);
                    return Some(index + 1);
                }
            }
            core::hint::spin_loop();
        }
    }

    fn release(&self, index_plus_one: u32) {
        let index = index_plus_one - 1;
        if let Some(word) = self.free.get(index as usize / 64) {
            word.fetch_or(1 << (index % 64), Ordering::Release);
            self.free_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn in_use(&self) -> impl Iterator<Item = &Ring> {
        let used = self.used.load(Ordering::Acquire) as usize;
        self.rings
            .iter()
            .take(used)
            .filter(|ring| ring.owner.load(Ordering::Acquire) != 0)
    }

    /// The number below which every event is in a ring now (or was given up).
    pub(crate) fn complete_below(&self) -> u64 {
        let horizon = order::horizon();
        self.in_use()
            .map(|ring| ring.bound.load(Ordering::SeqCst))
            .min()
            .unwrap_or(horizon)
            .min(horizon)
    }

    /// Moves all events numbered below `limit` into `out`, in order. Only the drainer calls this.
    pub(crate) fn drain(&self, limit: u64, out: &mut Vec<Event>) {
        for ring in self.in_use() {
            ring.drain(self, Seq(limit), out);
        }
        out.sort_by_key(|event| event.seq);
        OVERRUN.store(false, Ordering::Relaxed);
    }

    /// The least number that waits in a ring. Only the drainer calls this.
    pub(crate) fn least_waiting(&self) -> Option<u64> {
        self.in_use()
            .filter_map(|ring| ring.peek(self))
            .map(|seq| seq.0)
            .min()
    }

    /// Gives back the rings of threads that are gone. Only the drainer calls this.
    pub(crate) fn reap(&self, is_alive: impl Fn(u32) -> bool) {
        for ring in self.in_use() {
            if is_alive(ring.owner.load(Ordering::Relaxed)) {
                continue;
            }
            // The thread may have been ended inside of a push: what it was about to write never comes.
            order::done(&ring.bound);
            if ring.peek(self).is_none() {
                let first = ring.first.swap(0, Ordering::Relaxed);
                let last = if ring.read_chunk.get() == 0 {
                    first
                } else {
                    ring.read_chunk.get()
                };
                if last != 0 {
                    self.release(last);
                }
                ring.read_chunk.set(0);
                ring.read.set(0);
                ring.owner.store(0, Ordering::Release);
                CROWDED.store(false, Ordering::Relaxed);
            }
        }
    }
}

impl Ring {
    /// Writes one event. `make` gets the number and the thread. `None` if there was no room; then the event is counted lost.
    #[inline]
    pub(crate) fn push(
        &self,
        urgent: bool,
        make: impl FnOnce(Seq, ThreadId) -> Event,
    ) -> Option<Seq> {
        let rings = Rings::get()?;
        let mut chunk = rings.chunk(self.write_chunk.get());
        let mut at = self.written.get();
        if chunk.is_none() || at >= CHUNK_EVENTS {
            chunk = self.extend(rings, urgent);
            at = 0;
        }
        let Some(chunk) = chunk else {
            LOST.count(urgent);
            return None;
        };
        let slot = chunk.events.get(at as usize)?;
        let seq = order::take(&self.bound);
        let event = make(seq, ThreadId(self.thread.get()));
        // SAFETY: the slot is past `published`, so the consumer does not read it, and this thread is the only producer.
        unsafe { slot.get().write(event) };
        chunk.published.store(at + 1, Ordering::Release);
        order::done(&self.bound);
        self.written.set(at + 1);
        if at + 1 == CHUNK_EVENTS / 2 {
            drainer::wake_if_asleep();
        }
        Some(seq)
    }

    /// Hangs a further chunk to the chain.
    #[cold]
    fn extend<'a>(&self, rings: &'a Rings, urgent: bool) -> Option<&'a Chunk> {
        let is_first = self.write_chunk.get() == 0;
        let index = match rings.acquire(urgent, is_first) {
            Some(index) => index,
            None => Self::wait_for_chunk(rings, urgent)?,
        };
        match rings.chunk(self.write_chunk.get()) {
            Some(last) => last.next.store(index, Ordering::Release),
            None => self.first.store(index, Ordering::Release),
        }
        self.write_chunk.set(index);
        self.written.set(0);
        rings.chunk(index)
    }

    fn wait_for_chunk(rings: &Rings, urgent: bool) -> Option<u32> {
        drainer::wake_if_asleep();
        let since = crate::record::clock::anchor().monotonic_ns;
        while !OVERRUN.load(Ordering::Relaxed) {
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
            if let Some(index) = rings.acquire(urgent, false) {
                return Some(index);
            }
            if crate::record::clock::anchor()
                .monotonic_ns
                .wrapping_sub(since)
                > PATIENCE_NS
            {
                OVERRUN.store(true, Ordering::Relaxed);
            }
        }
        rings.acquire(urgent, false)
    }

    /// The consumer's chunk: where it stands, or the first of the chain.
    fn reading<'a>(&self, rings: &'a Rings) -> Option<&'a Chunk> {
        if self.read_chunk.get() == 0 {
            self.read_chunk.set(self.first.load(Ordering::Acquire));
            self.read.set(0);
        }
        rings.chunk(self.read_chunk.get())
    }

    /// Steps to the next chunk of the chain if there is one, and gives the one that was read to the end back to the pool.
    fn step(&self, rings: &Rings, chunk: &Chunk) -> bool {
        let next = chunk.next.load(Ordering::Acquire);
        if next == 0 {
            return false;
        }
        let done = self.read_chunk.replace(next);
        self.read.set(0);
        self.first.store(next, Ordering::Relaxed);
        rings.release(done);
        true
    }

    fn drain(&self, rings: &Rings, limit: Seq, out: &mut Vec<Event>) {
        while let Some(chunk) = self.reading(rings) {
            let published = chunk.published.load(Ordering::Acquire);
            while self.read.get() < published {
                let Some(slot) = chunk.events.get(self.read.get() as usize) else {
                    return;
                };
                // SAFETY: the slot is below `published`, which the producer's release made visible, and stays as it is.
                let event = unsafe { slot.get().read() };
                if event.seq >= limit {
                    return;
                }
                out.push(event);
                self.read.set(self.read.get() + 1);
            }
            if published < CHUNK_EVENTS || !self.step(rings, chunk) {
                return;
            }
        }
    }

    /// The number of the next event to read.
    fn peek(&self, rings: &Rings) -> Option<Seq> {
        let mut chunk = self.reading(rings)?;
        if self.read.get() == CHUNK_EVENTS && self.step(rings, chunk) {
            chunk = self.reading(rings)?;
        }
        if self.read.get() == chunk.published.load(Ordering::Acquire) {
            return None;
        }
        let slot = chunk.events.get(self.read.get() as usize)?;
        // SAFETY: as in `drain`.
        Some(unsafe { (*slot.get()).seq })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::order;

    fn event(seq: Seq, thread: ThreadId, word: u64) -> Event {
        Event {
            seq,
            thread,
            words: [word, 0, 0, 0],
            ..Event::default()
        }
    }

    /// One test, since the rings and the numbers are the process's.
    #[test]
    fn what_threads_push_is_drained_once_and_in_order() {
        const THREADS: u32 = 4;
        const EACH: u64 = 50_000;
        assert!(Rings::create());
        let rings = Rings::get().unwrap();
        let first = order::horizon();
        let mut drained = Vec::new();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let ring = rings.claim(1000 + thread, ThreadId(thread)).unwrap();
                    for word in 0..EACH {
                        assert!(
                            ring.push(word % 2 == 0, |seq, thread| event(seq, thread, word))
                                .is_some()
                        );
                    }
                });
            }
            let all = u64::from(THREADS) * EACH;
            let mut batch = Vec::new();
            while (drained.len() as u64) < all {
                let limit = rings.complete_below();
                rings.drain(
                    limit.min(rings.least_waiting().map_or(limit, |least| least + 1000)),
                    &mut batch,
                );
                assert!(batch.len() <= 1000);
                drained.append(&mut batch);
                std::thread::yield_now();
            }
        });
        for (at, event) in drained.iter().enumerate() {
            assert_eq!(event.seq.0, first + at as u64);
        }
        for thread in 0..THREADS {
            let words: Vec<u64> = drained
                .iter()
                .filter(|event| event.thread.0 == thread)
                .map(|event| event.words[0])
                .collect();
            assert!(words.iter().copied().eq(0..EACH), "thread {thread}");
        }

        // A thread that dies inside of a push holds back what comes later only until it is found gone.
        let dead = rings.claim(77, ThreadId(9)).unwrap();
        order::take(&dead.bound);
        let alive = rings.claim(78, ThreadId(10)).unwrap();
        alive
            .push(false, |seq, thread| event(seq, thread, 5))
            .unwrap();
        rings.drain(rings.complete_below(), &mut drained);
        let before = drained.len();
        rings.reap(|tid| tid == 78);
        rings.drain(rings.complete_below(), &mut drained);
        assert_eq!(drained.len(), before + 1);
        assert!(
            rings
                .claim(79, ThreadId(11))
                .is_some_and(|ring| core::ptr::eq(ring, &rings.rings[0]))
        );

        // With the pool empty, what creates is given up and counted; what destroys still has the reserve.
        let lost = LOST.others.load(Ordering::Relaxed);
        let mut kept = 0u64;
        while alive
            .push(false, |seq, thread| event(seq, thread, 0))
            .is_some()
        {
            kept += 1;
        }
        assert!(
            kept >= u64::from(CHUNK_EVENTS)
                * (CHUNKS as u64 - RINGS as u64 - u64::from(RESERVE) - 8)
        );
        assert_eq!(LOST.others.load(Ordering::Relaxed), lost + 1);
        assert!(
            alive
                .push(true, |seq, thread| event(seq, thread, 1))
                .is_some()
        );
        let mut rest = Vec::new();
        rings.drain(rings.complete_below(), &mut rest);
        assert_eq!(rest.len() as u64, kept + 1);
        assert!(
            alive
                .push(false, |seq, thread| event(seq, thread, 2))
                .is_some()
        );
    }
}
