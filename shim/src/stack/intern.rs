//! From a stack to its number.
//!
//! Two steps. A walk gives a raw hash (return addresses and instruction pointers as they are in memory); a cache of this
//! thread maps it to an id at once. Addresses can come to mean something else, when a library is closed or a code object is
//! freed: both bump the **era**, and a cached id counts only within its era. On a miss the stack is resolved to
//! frames that never change their meaning (module and offset, code and line), and the hash of those finds the id in a table
//! that all threads share. So after a bump the same stack has the same id again.

use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use gpumem_wire::define::{BorrowedDefinition, StackDefinition};
use gpumem_wire::{Definition, Frame, StackId};

use super::fold::Fold;
use super::{arena, region};

/// Ids 0 and 1 are taken: no stack, and overflow.
static STACKS: Table = Table::new(20, 2);
static ERA: AtomicU32 = AtomicU32::new(1);
static OVERFLOWS: AtomicU64 = AtomicU64::new(0);

/// The current era. A stack that is being walked cannot lose a library or a code object of its own, and what now stands at
/// a reused address became visible to this thread by a lock taken after the bump (the interpreter's or the loader's): so
/// relaxed is enough.
#[inline(always)]
pub(crate) fn era() -> u32 {
    ERA.load(Ordering::Relaxed)
}

/// Some address may now mean something else: caches of all threads are void.
pub(crate) fn next_era() {
    ERA.fetch_add(1, Ordering::Relaxed);
}

/// Stacks that got no id of their own because a table or the arena was full.
pub(crate) fn overflows() -> u64 {
    OVERFLOWS.load(Ordering::Relaxed)
}

/// The id of a resolved stack; its definition is in the arena when this returns. `encoded` is working memory.
pub(crate) fn stack_id(frames: &[Frame], left_out: u32, encoded: &mut [u8]) -> StackId {
    let id = STACKS.intern(hash_of(frames, left_out), |id| {
        let definition: BorrowedDefinition<'_> = Definition::Stack(StackDefinition {
            id: StackId(id),
            left_out,
            frames,
        });
        define(&definition, encoded)
    });
    match id {
        Some(id) => StackId(id),
        None => {
            OVERFLOWS.fetch_add(1, Ordering::Relaxed);
            StackId::OVERFLOW
        }
    }
}

/// Puts a definition into the arena. False: it is full.
pub(crate) fn define(definition: &BorrowedDefinition<'_>, encoded: &mut [u8]) -> bool {
    let Ok(length) = definition.encode_into(encoded) else {
        return false;
    };
    encoded.get(..length).is_some_and(arena::append)
}

fn hash_of(frames: &[Frame], left_out: u32) -> u64 {
    let mut fold = Fold::new();
    for frame in frames {
        // The upper half of a first word tells the kinds apart.
        match *frame {
            Frame::Native { module, address } => {
                fold.word(1 << 32 | u64::from(module.0));
                fold.word(address);
            }
            Frame::Unknown { address } => {
                fold.word(2 << 32);
                fold.word(address);
            }
            Frame::Python { code, line } => {
                fold.word(3 << 32 | u64::from(code.0));
                fold.word(u64::from(line));
            }
            Frame::Elided => fold.word(4 << 32),
        }
    }
    fold.word(u64::from(left_out));
    fold.finish()
}

/// The ids that this thread used lately, by raw hash. All zeros is a valid empty cache: a hash is never 0.
pub(crate) struct ThreadCache {
    entries: [CacheEntry; Self::ENTRIES],
}

#[derive(Clone, Copy)]
struct CacheEntry {
    hash: u64,
    id: u32,
    era: u32,
}

impl ThreadCache {
    const ENTRIES: usize = 2048;

    /// The id of the stack with this raw hash, if it was remembered in this era. (An era returns after 2^32 bumps; an
    /// entry would have to sleep through all of them.)
    #[inline(always)]
    pub(crate) fn get(&self, hash: u64, era: u32) -> Option<StackId> {
        let entry = self.entries.get(Self::index(hash))?;
        (entry.hash == hash && entry.era == era).then_some(StackId(entry.id))
    }

    /// Remembers an id.
    pub(crate) fn put(&mut self, hash: u64, era: u32, id: StackId) {
        if let Some(entry) = self.entries.get_mut(Self::index(hash)) {
            *entry = CacheEntry {
                hash,
                id: id.0,
                era,
            };
        }
    }

    #[inline(always)]
    fn index(hash: u64) -> usize {
        (hash >> 32) as usize % Self::ENTRIES
    }
}

/// A bounded, lock-free map from 64-bit hashes to numbers, shared by all threads. Nothing is removed.
pub(crate) struct Table {
    slots: AtomicPtr<Slot>,
    log2_slots: u32,
    used: AtomicU32,
    next: AtomicU32,
}

struct Slot {
    hash: AtomicU64,
    /// 0 while the slot's first finder is still defining it.
    id: AtomicU32,
}

/// How far from its place an entry may lie: beyond that the table counts as full.
const PROBES: u64 = 64;

impl Table {
    /// A table of `2^log2_slots` slots whose numbers start at `first`.
    pub(crate) const fn new(log2_slots: u32, first: u32) -> Self {
        Self {
            slots: AtomicPtr::new(core::ptr::null_mut()),
            log2_slots,
            used: AtomicU32::new(0),
            next: AtomicU32::new(first),
        }
    }

    /// The number of `hash`. If it is new it gets one, and `define` must make that number's meaning known (false: could
    /// not) before anyone else can learn it. `None`: full.
    ///
    /// A thread that meets a slot which another is still defining does not wait for it: it defines a second number with the
    /// same meaning, since the other may be stopped, or dead.
    pub(crate) fn intern(&self, hash: u64, define: impl FnOnce(u32) -> bool) -> Option<u32> {
        let slots = self.slots()?;
        let size = 1u64 << self.log2_slots;
        for probe in 0..PROBES {
            let at = (hash >> 1).wrapping_add(probe) & (size - 1);
            // SAFETY: `slots` is an array of `size` zeroed slots that is never unmapped, and `at` is below `size`.
            let slot = unsafe { &*slots.add(at as usize) };
            let mut found = slot.hash.load(Ordering::Relaxed);
            if found == 0 {
                if u64::from(self.used.load(Ordering::Relaxed)) >= size / 4 * 3 {
                    return None;
                }
                // Relaxed: the hash alone carries nothing; the number is published below.
                match slot
                    .hash
                    .compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => {
                        self.used.fetch_add(1, Ordering::Relaxed);
                        let id = self.next.fetch_add(1, Ordering::Relaxed);
                        if !define(id) {
                            return None;
                        }
                        // Release: whoever gets the number from here sees its definition in the arena.
                        slot.id.store(id, Ordering::Release);
                        return Some(id);
                    }
                    Err(other) => found = other,
                }
            }
            if found == hash {
                let id = slot.id.load(Ordering::Acquire);
                if id != 0 {
                    return Some(id);
                }
                let id = self.next.fetch_add(1, Ordering::Relaxed);
                if !define(id) {
                    return None;
                }
                // In case the other never comes to it. If it does, its number takes the place of ours; both are good.
                let _ = slot
                    .id
                    .compare_exchange(0, id, Ordering::Release, Ordering::Relaxed);
                return Some(id);
            }
        }
        None
    }

    fn slots(&self) -> Option<*mut Slot> {
        // Acquire pairs with the exchange in `create`; the pages are zero in any case.
        let slots = self.slots.load(Ordering::Acquire);
        if slots.is_null() {
            self.create()
        } else {
            Some(slots)
        }
    }

    #[cold]
    fn create(&self) -> Option<*mut Slot> {
        let size = size_of::<Slot>() << self.log2_slots;
        let fresh = region::map(size)?;
        let null = core::ptr::null_mut();
        match self
            .slots
            .compare_exchange(null, fresh.cast(), Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Some(fresh.cast()),
            Err(other) => {
                region::unmap(fresh, size);
                Some(other)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_defined_once_and_keeps_its_number() {
        let table = Table::new(6, 2);
        let mut defined = Vec::new();
        for hash in [11, 13, 11, 13, 11] {
            table.intern(hash, |id| {
                defined.push((hash, id));
                true
            });
        }
        assert_eq!(defined, [(11, 2), (13, 3)]);
        assert_eq!(table.intern(13, |_| false), Some(3));
    }

    #[test]
    fn a_half_inserted_hash_gets_a_second_number() {
        let table = Table::new(6, 2);
        let mut inner = None;
        let outer = table.intern(9, |_| {
            inner = table.intern(9, |_| true);
            true
        });
        assert_eq!((outer, inner), (Some(2), Some(3)));
        assert_eq!(table.intern(9, |_| false), Some(2));
    }

    #[test]
    fn a_full_table_says_so() {
        let table = Table::new(4, 2);
        let given = (0..16u64)
            .filter_map(|hash| table.intern(2 * hash + 1, |_| true))
            .count();
        assert_eq!(given, 12);
        assert_eq!(table.intern(99, |_| true), None);
        assert_eq!(table.intern(1, |_| false), Some(2));
    }

    #[test]
    fn what_could_not_be_defined_gets_no_number() {
        let table = Table::new(4, 2);
        assert_eq!(table.intern(5, |_| false), None);
        assert_eq!(table.intern(5, |_| true), Some(3));
    }

    #[test]
    fn a_cached_id_counts_only_in_its_era() {
        let mut cache = Box::new(ThreadCache {
            entries: [CacheEntry {
                hash: 0,
                id: 0,
                era: 0,
            }; ThreadCache::ENTRIES],
        });
        cache.put(77, 1, StackId(5));
        assert_eq!(cache.get(77, 1), Some(StackId(5)));
        assert_eq!(cache.get(77, 2), None);
        assert_eq!(cache.get(79, 1), None);
    }

    #[test]
    fn every_part_of_a_frame_counts() {
        use gpumem_wire::{CodeId, ModuleId};
        let stacks = [
            vec![Frame::Native {
                module: ModuleId(1),
                address: 2,
            }],
            vec![Frame::Native {
                module: ModuleId(2),
                address: 1,
            }],
            vec![Frame::Python {
                code: CodeId(1),
                line: 2,
            }],
            vec![Frame::Unknown { address: 2 }],
            vec![Frame::Elided],
            vec![],
        ];
        let mut hashes: Vec<u64> = stacks.iter().map(|frames| hash_of(frames, 0)).collect();
        hashes.push(hash_of(&[], 1));
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), stacks.len() + 1);
    }
}
