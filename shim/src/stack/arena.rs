//! The append-only arena of definitions: what every stack, module and code id of this process stands for.
//!
//! Encoded definitions are appended from inside hooks by any thread and drained by one reader (or by several, each from the
//! start: nothing is ever removed). The arena is one region, zero at first and bounded; when it is full nothing more is
//! defined and ids become overflow ids.
//!
//! A record is an 8-byte header and its bytes, padded to 8. A header of 0 means that nothing was ever put there. A thread
//! reserves a record by exchanging the 0 at the arena's end for `length | RESERVED`: place and length are claimed in one
//! step, so at no moment does a claimed place lack its length. Then it copies the bytes and stores `length | COMMITTED`.
//! So a reader can always step over a record that is not there yet, and a thread that dies half-way blocks nobody.

use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use super::region;

const RESERVED: u64 = 1 << 32;
const COMMITTED: u64 = 1 << 33;
const LENGTH: u64 = 0xffff_ffff;
const HEADER_BYTES: usize = 8;

/// Sizes to ask for, in bytes: under strict overcommit (`vm.overcommit_memory=2`) the large one may be refused.
const SIZES: [usize; 3] = [256 << 20, 64 << 20, 16 << 20];

static ARENA: Arena = Arena::new();

/// Appends one encoded definition. False: the arena is full, or no memory could be had for it.
pub(crate) fn append(record: &[u8]) -> bool {
    ARENA.append(record)
}

/// Reads definitions in the order in which they were claimed, each exactly once.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    cursor: usize,
    /// Records that were reserved but not committed when the cursor passed them.
    unfinished: Vec<usize>,
}

impl Reader {
    /// Appends to `out` the committed definitions that this reader has not given yet, each with the length prefix that
    /// `gpumem_wire::define::read_all` expects, until `out` holds at least `limit_bytes`. True if it stopped at the limit.
    ///
    /// Whoever reads an id from an event first and calls this afterwards gets the id's definition: an id is given out
    /// only after its definition was committed.
    pub(crate) fn read(&mut self, out: &mut Vec<u8>, limit_bytes: usize) -> bool {
        self.read_from(&ARENA, out, limit_bytes)
    }

    fn read_from(&mut self, arena: &Arena, out: &mut Vec<u8>, limit_bytes: usize) -> bool {
        self.unfinished.retain(|at| match arena.record(*at) {
            Record::Committed(bytes) => {
                out.extend_from_slice(bytes);
                false
            }
            _ => true,
        });
        loop {
            if out.len() >= limit_bytes {
                return true;
            }
            let length = match arena.record(self.cursor) {
                Record::None => return false,
                Record::Reserved(length) => {
                    self.unfinished.push(self.cursor);
                    length
                }
                Record::Committed(bytes) => {
                    out.extend_from_slice(bytes);
                    bytes.len()
                }
            };
            self.cursor += space(length);
        }
    }
}

enum Record<'a> {
    None,
    Reserved(usize),
    Committed(&'a [u8]),
}

struct Arena {
    start: AtomicPtr<u8>,
    size: AtomicUsize,
    /// Where the end was lately: a hint, never beyond the true end.
    end: AtomicUsize,
}

const fn space(length: usize) -> usize {
    HEADER_BYTES + length.next_multiple_of(8)
}

impl Arena {
    const fn new() -> Self {
        Self {
            start: AtomicPtr::new(core::ptr::null_mut()),
            size: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
        }
    }

    /// The header at `at`, if the arena reaches that far.
    fn header(&self, at: usize) -> Option<&AtomicU64> {
        // Acquire: the region's zeroed pages and its size come before the pointer. The size is stored before the pointer
        // and never changes while the pointer is set, so the two belong together.
        let start = self.start.load(Ordering::Acquire);
        if start.is_null() || at + HEADER_BYTES > self.size.load(Ordering::Relaxed) {
            return None;
        }
        // SAFETY: the header lies in the region by the check above, is aligned because the region and every record's space
        // are multiples of 8, and is only ever touched as an atomic.
        Some(unsafe { &*start.add(at).cast::<AtomicU64>() })
    }

    /// Where the bytes of the record at `at` begin, if its header does lie in the arena. Taken from the region's own pointer:
    /// that of the header's reference reaches no further than the header.
    fn bytes(&self, at: usize) -> Option<*mut u8> {
        self.header(at)?;
        let start = self.start.load(Ordering::Acquire);
        // SAFETY: the header lies in the region, so the address after it does or is the region's end.
        Some(unsafe { start.add(at + HEADER_BYTES) })
    }

    fn record(&self, at: usize) -> Record<'_> {
        let (Some(header), Some(bytes)) = (self.header(at), self.bytes(at)) else {
            return Record::None;
        };
        // Acquire pairs with the commit's release: the bytes are there.
        let value = header.load(Ordering::Acquire);
        let length = (value & LENGTH) as usize;
        if value == 0 {
            Record::None
        } else if value & COMMITTED == 0 {
            Record::Reserved(length)
        } else {
            // SAFETY: a committed record's bytes follow its header, were bounded when it was reserved, and never change.
            Record::Committed(unsafe { core::slice::from_raw_parts(bytes.cast_const(), length) })
        }
    }

    fn append(&self, record: &[u8]) -> bool {
        if self.start.load(Ordering::Relaxed).is_null() && !self.create() {
            return false;
        }
        let size = self.size.load(Ordering::Relaxed);
        let mut at = self.end.load(Ordering::Relaxed);
        let header = loop {
            if at + space(record.len()) > size {
                return false;
            }
            let Some(header) = self.header(at) else {
                return false;
            };
            // Relaxed: the claim publishes nothing but itself, and its value (a length) is all that others use of it.
            match header.compare_exchange(
                0,
                record.len() as u64 | RESERVED,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => break header,
                Err(taken) => at += space((taken & LENGTH) as usize),
            }
        };
        self.end
            .fetch_max(at + space(record.len()), Ordering::Relaxed);
        let Some(bytes) = self.bytes(at) else {
            return false;
        };
        // SAFETY: the exchange gave this place to this thread alone; it fits by the check in the loop.
        unsafe { core::ptr::copy_nonoverlapping(record.as_ptr(), bytes, record.len()) };
        // Release: whoever sees the commit sees the bytes.
        header.store(record.len() as u64 | COMMITTED, Ordering::Release);
        true
    }

    #[cold]
    fn create(&self) -> bool {
        for size in SIZES {
            if let Some(start) = region::map(size) {
                if !self.adopt(start, size) {
                    region::unmap(start, size);
                }
                return true;
            }
        }
        false
    }

    fn adopt(&self, start: *mut u8, size: usize) -> bool {
        // One thread alone sets the size, and it does so before the pointer becomes visible.
        if self
            .size
            .compare_exchange(0, size, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return false;
        }
        self.start.store(start, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena(words: usize) -> (Box<[u64]>, Arena) {
        let mut memory = vec![0u64; words].into_boxed_slice();
        let arena = Arena::new();
        assert!(arena.adopt(memory.as_mut_ptr().cast(), words * 8));
        (memory, arena)
    }

    #[test]
    fn a_record_that_is_not_finished_is_stepped_over_and_given_later() {
        let (_memory, arena) = arena(64);
        assert!(arena.append(b"first"));
        let reserved = space(5);
        arena
            .header(reserved)
            .unwrap()
            .store(3 | RESERVED, Ordering::Relaxed);
        assert!(arena.append(b"third"));
        let (mut reader, mut out) = (Reader::default(), Vec::new());
        assert!(!reader.read_from(&arena, &mut out, usize::MAX));
        assert_eq!(out, b"firstthird");
        arena
            .header(reserved)
            .unwrap()
            .store(3 | COMMITTED, Ordering::Release);
        out.clear();
        reader.read_from(&arena, &mut out, usize::MAX);
        assert_eq!(out, [0, 0, 0]);
        out.clear();
        reader.read_from(&arena, &mut out, usize::MAX);
        assert!(out.is_empty());
    }

    #[test]
    fn a_full_arena_refuses_and_stays_readable() {
        let (_memory, arena) = arena(4);
        assert!(arena.append(&[7; 16]));
        assert!(!arena.append(&[8; 8]));
        let mut out = Vec::new();
        Reader::default().read_from(&arena, &mut out, usize::MAX);
        assert_eq!(out, [7; 16]);
    }

    #[test]
    fn a_reader_stops_at_its_limit_and_goes_on_from_there() {
        let (_memory, arena) = arena(64);
        for byte in 0..4u8 {
            assert!(arena.append(&[byte; 4]));
        }
        let (mut reader, mut out) = (Reader::default(), Vec::new());
        assert!(reader.read_from(&arena, &mut out, 6));
        assert_eq!(out, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert!(!reader.read_from(&arena, &mut out, usize::MAX));
        assert_eq!(out.len(), 16);
    }

    #[test]
    fn records_of_many_threads_are_all_there_and_whole() {
        let (_memory, arena) = arena(1 << 16);
        std::thread::scope(|scope| {
            for thread in 0..4u8 {
                let arena = &arena;
                scope.spawn(move || {
                    for length in 1..200 {
                        assert!(arena.append(&vec![thread; length]));
                    }
                });
            }
        });
        let mut out = Vec::new();
        Reader::default().read_from(&arena, &mut out, usize::MAX);
        for thread in 0..4u8 {
            let bytes = out.iter().filter(|byte| **byte == thread).count();
            assert_eq!(bytes, (1..200).sum::<usize>());
        }
    }
}
