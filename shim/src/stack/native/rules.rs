//! The rule of each return address, from a table that all threads share.
//!
//! A look-up on the way is one cache line and no lock. A miss parses the object's `.eh_frame` (about a third of a
//! microsecond) and overwrites a slot. When a library is closed its addresses may come to hold another one: the table's
//! epoch, a part of every key, then changes.

use core::sync::atomic::{AtomicU64, Ordering};

use gimli::{
    BaseAddresses, EhFrameHdr, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindContextStorage, UnwindSection, UnwindTableRow,
};

use super::{Rule, object};

const BUCKETS: usize = 1 << 14;
const WAYS: usize = 4;

/// One rule. The two words are written and read without a lock, so a reader may see a key of one write beside a rule of
/// another. The key is stored xor-ed with the rule: a mixed pair does not give back the key that is looked for, and
/// counts as a miss. (Two writers that mix can only lose a rule in the same way.)
struct Slot {
    key_xor_rule: AtomicU64,
    rule: AtomicU64,
}

/// Four slots, one cache line.
#[repr(align(64))]
struct Bucket([Slot; WAYS]);

static TABLE: [Bucket; BUCKETS] = [const {
    Bucket(
        [const {
            Slot {
                key_xor_rule: AtomicU64::new(0),
                rule: AtomicU64::new(0),
            }
        }; WAYS],
    )
}; BUCKETS];

static EPOCH: AtomicU64 = AtomicU64::new(1);
static MISSES: AtomicU64 = AtomicU64::new(0);

/// The epoch takes 15 bits of a key, above the 48 of an address; the topmost bit tells a return address from an exact one.
const EPOCH_BITS: u64 = 0x7fff;

/// The current epoch. Relaxed is enough for the reason given at `intern::era`.
#[inline(always)]
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// A library was closed: no rule found so far counts any longer.
pub(crate) fn next_epoch() {
    let epoch = EPOCH.fetch_add(1, Ordering::Relaxed) + 1;
    if epoch & EPOCH_BITS == 0 {
        // The bits begin anew, and rules of 32,768 epochs ago would count again.
        for slot in TABLE.iter().flat_map(|bucket| &bucket.0) {
            slot.rule.store(0, Ordering::Relaxed);
        }
    }
}

/// How often a rule had to be made.
pub(crate) fn misses() -> u64 {
    MISSES.load(Ordering::Relaxed)
}

/// The rule for leaving the frame whose instruction pointer is `ip`. A return address may lie just behind the last
/// instruction of its function (the call does not return), so the rule is that of the byte before it, unless `exact`.
#[inline(always)]
pub(crate) fn rule(ip: u64, exact: bool, epoch: u64) -> Rule {
    let key = ip ^ (epoch & EPOCH_BITS) << 48 ^ u64::from(exact) << 63;
    let index =
        (ip.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - BUCKETS.trailing_zeros())) as usize;
    let Some(bucket) = TABLE.get(index) else {
        return Rule::UNKNOWN;
    };
    for slot in &bucket.0 {
        // Relaxed: see `Slot`.
        let rule = slot.rule.load(Ordering::Relaxed);
        if slot.key_xor_rule.load(Ordering::Relaxed) ^ rule == key && rule != 0 {
            return Rule(rule);
        }
    }
    miss(bucket, key, ip, exact)
}

#[cold]
#[inline(never)]
fn miss(bucket: &Bucket, key: u64, ip: u64, exact: bool) -> Rule {
    MISSES.fetch_add(1, Ordering::Relaxed);
    let rule = derive(if exact { ip } else { ip - 1 }).unwrap_or(Rule::UNKNOWN);
    let stale = |slot: &&Slot| {
        let rule = slot.rule.load(Ordering::Relaxed);
        let other = slot.key_xor_rule.load(Ordering::Relaxed) ^ rule ^ key;
        rule == 0 || other >> 48 & EPOCH_BITS != 0
    };
    let victim = bucket
        .0
        .iter()
        .find(stale)
        .or_else(|| bucket.0.get(ip as usize >> 4 & (WAYS - 1)));
    if let Some(slot) = victim {
        slot.rule.store(rule.0, Ordering::Relaxed);
        slot.key_xor_rule.store(key ^ rule.0, Ordering::Relaxed);
    }
    rule
}

type Section = EndianSlice<'static, LittleEndian>;
/// The section that holds the unwind information of an object.
pub(crate) type EhFrame = gimli::EhFrame<Section>;
/// The unwind information at one address.
pub(crate) type Row = UnwindTableRow<usize, OnStack>;

/// Room for the rules of one function, without the heap: x86-64 code names 17 registers, and rows are seldom saved
/// more than once within each other. What needs more fails to parse.
pub(crate) struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, Self>; 4];
}

/// Makes the rule of the code at `address` from its object's `.eh_frame`.
fn derive(address: u64) -> Option<Rule> {
    let object = object::find(address)?;
    let bases = BaseAddresses::default().set_eh_frame_hdr(object.eh_frame_header);
    let header = EhFrameHdr::from(section(object.eh_frame_header, object.end)?);
    let header = header.parse(&bases, 8).ok()?;
    let start = header.eh_frame_ptr().direct().ok()?;
    let bases = bases.set_eh_frame(start);
    let eh_frame = EhFrame::from(section(start, object.end)?);
    let fde = header
        .table()?
        .fde_for_address(&eh_frame, &bases, address, EhFrame::cie_from_offset)
        .ok()?;
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = fde
        .unwind_info_for_address(&eh_frame, &bases, &mut context, address)
        .ok()?;
    Some(Rule::from_row(
        row,
        fde.is_signal_trampoline(),
        &eh_frame,
        fde.cie().encoding(),
    ))
}

/// The bytes from `start` to the end of the object's mapping.
fn section(start: u64, end: u64) -> Option<Section> {
    let length = end.checked_sub(start).filter(|_| start != 0)?;
    // SAFETY: both tables lie in the object's first readable segments; the linker's own lengths in them lead no read out of
    // the tables, and the object stays mapped while it is being unwound through. `'static` is as long as gimli needs them:
    // nothing is kept after `derive`.
    let bytes = unsafe { core::slice::from_raw_parts(start as *const u8, length as usize) };
    Some(EndianSlice::new(bytes, LittleEndian))
}

#[cfg(test)]
mod tests {
    use super::super::Registers;
    use super::*;

    #[test]
    fn a_rule_is_made_once_and_again_in_the_next_epoch() {
        let ip = Registers::here().ip;
        // Epochs that no other test is in.
        let (first, second) = (0x5001, 0x5002);
        let made = rule(ip, true, first);
        assert!(made != Rule::UNKNOWN && made != Rule::END);
        let key = ip ^ first << 48 ^ 1 << 63;
        let held = |key: u64| {
            let slots = TABLE.iter().flat_map(|bucket| &bucket.0);
            slots
                .filter(|slot| {
                    let rule = slot.rule.load(Ordering::Relaxed);
                    rule != 0 && slot.key_xor_rule.load(Ordering::Relaxed) ^ rule == key
                })
                .count()
        };
        assert_eq!(held(key), 1);
        assert_eq!(rule(ip, true, first), made);
        assert_eq!(held(key), 1);
        assert_eq!(rule(ip, true, second), made);
        assert_eq!(held(ip ^ second << 48 ^ 1 << 63), 1);
    }

    #[test]
    fn an_address_outside_of_all_objects_has_no_rule() {
        assert_eq!(rule(0x1000, true, 0x5001), Rule::UNKNOWN);
    }
}
