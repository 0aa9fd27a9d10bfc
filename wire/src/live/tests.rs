//! The rules of the live table, each on a list of events.

use super::*;
use crate::event::Kind;

/// A table and the events that feed it, numbered as they come.
#[derive(Default)]
struct Run {
    table: LiveTable,
    seq: u64,
    changes: Vec<Change>,
}

impl Run {
    fn on(&mut self, thread: u32, kind: Kind, words: [u64; 4]) -> u64 {
        self.seq += 1;
        let event = Event {
            seq: Seq(self.seq),
            kind: kind as u16,
            thread: ThreadId(thread),
            device: DeviceOrdinal(0),
            words,
            ..Event::default()
        };
        self.changes.clear();
        self.table.apply(&event, |change| self.changes.push(change));
        self.seq
    }

    fn bytes(&self, object: Object) -> u64 {
        self.table
            .iter()
            .filter(|live| live.object == object)
            .map(|live| live.bytes)
            .sum()
    }
}

#[test]
fn a_free_that_fails_takes_nothing() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    let begin = run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
    assert!(run.table.is_empty());
    run.on(2, Kind::DeviceAlloc, [0x9000, 8, 9, 8]);
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert_eq!(run.bytes(Object::DeviceAllocation), 72);
    assert!(matches!(run.changes[..], [Change::Restored(_)]));
}

#[test]
fn a_free_that_fails_takes_nothing_whatever_was_noted_meanwhile() {
    for noted in [Kind::Finalising, Kind::ExitHandler, Kind::Gap, Kind::Mark] {
        let mut run = Run::default();
        run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
        let begin = run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
        run.on(1, noted, [0; 4]);
        run.on(1, Kind::Undone, [begin, 1, 0, 0]);
        assert_eq!(run.bytes(Object::DeviceAllocation), 64, "{noted:?}");
    }
}

#[test]
fn an_undo_of_something_else_is_ignored() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    let begin = run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
    run.on(1, Kind::Undone, [begin + 1, 1, 0, 0]);
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert!(run.table.is_empty());
    // A call that came after it shows that it succeeded.
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    let begin = run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
    run.on(1, Kind::Free, [0x2000, 0, 0, 0]);
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert!(run.table.is_empty());
}

#[test]
fn an_undo_over_another_object_says_that_it_went() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    let begin = run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
    run.on(2, Kind::PoolAlloc, [0x1000, 8, 0, 0]);
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert_eq!(run.bytes(Object::DeviceAllocation), 64);
    assert!(matches!(
        run.changes[..],
        [Change::Died { implicit: true, .. }, Change::Restored(_)]
    ));
}

#[test]
fn a_free_finds_the_kind_that_has_the_address() {
    let mut run = Run::default();
    run.on(1, Kind::PoolAlloc, [0x2000, 32, 0, 0]);
    run.on(1, Kind::Free, [0x2000, 5, 0, 0]);
    assert!(run.table.is_empty());
    run.on(1, Kind::Free, [0x2000, 5, 0, 0]);
    assert_eq!(run.changes, [Change::Unknown { key: 0x2000 }]);
}

#[test]
fn an_address_handed_out_again_leaves_no_ghost() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    run.on(1, Kind::PoolAlloc, [0x1000, 32, 0, 0]);
    assert_eq!(run.table.len(), 1);
    assert!(matches!(
        run.changes[..],
        [Change::Died { implicit: true, .. }, Change::Born(_)]
    ));
}

#[test]
fn physical_memory_lives_until_handles_and_mappings_are_gone() {
    let mut run = Run::default();
    run.on(1, Kind::PhysicalCreate, [7, 2 << 20, 1, 0]);
    run.on(1, Kind::Map, [0x10_0000, 2 << 20, 7, 0]);
    run.on(1, Kind::Map, [0x90_0000, 2 << 20, 7, 0]);
    run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    assert_eq!(run.bytes(Object::Physical), 2 << 20);
    // The driver may hand out the same handle again while the old memory is still mapped.
    run.on(1, Kind::PhysicalCreate, [7, 4 << 20, 1, 0]);
    assert_eq!(run.bytes(Object::Physical), 6 << 20);
    run.on(1, Kind::Unmap, [0x10_0000, 2 << 20, 0, 0]);
    assert_eq!(run.bytes(Object::Physical), 6 << 20);
    run.on(1, Kind::Unmap, [0x90_0000, 2 << 20, 0, 0]);
    assert_eq!(run.bytes(Object::Physical), 4 << 20);
    run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    assert!(run.table.is_empty());
}

#[test]
fn a_mapping_is_on_the_device_of_its_memory() {
    let mut table = LiveTable::default();
    let mut on = |seq, kind: Kind, device, words| {
        let device = DeviceOrdinal(device);
        let event = Event {
            seq: Seq(seq),
            kind: kind as u16,
            device,
            words,
            ..Event::default()
        };
        table.apply(&event, |_| {});
    };
    on(1, Kind::PhysicalCreate, 3, [7, 64, 1, 0]);
    on(2, Kind::Map, -1, [0x1000, 64, 7, 0]);
    let mapping = table.get(Object::Mapping, 0x1000).unwrap();
    assert_eq!(mapping.device, DeviceOrdinal(3));
}

#[test]
fn one_unmap_covers_several_mappings_and_may_fail() {
    let mut run = Run::default();
    for (handle, at) in [(1, 0x1000), (2, 0x2000), (3, 0x3000)] {
        run.on(1, Kind::PhysicalCreate, [handle, 0x1000, 1, 0]);
        run.on(1, Kind::Map, [at, 0x1000, handle, 0]);
        run.on(1, Kind::PhysicalRelease, [handle, 0, 0, 0]);
    }
    let before: Vec<LiveObject> = sorted(&run.table);
    let begin = run.on(1, Kind::Unmap, [0x1000, 0x2000, 0, 0]);
    assert_eq!(run.bytes(Object::Physical), 0x1000);
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert_eq!(sorted(&run.table), before);
    run.on(1, Kind::Unmap, [0x1000, 0x3000, 0, 0]);
    assert!(run.table.is_empty());
}

#[test]
fn a_release_that_fails_restores_handle_and_counts() {
    let mut run = Run::default();
    run.on(1, Kind::PhysicalCreate, [7, 64, 1, 0]);
    let before = sorted(&run.table);
    let begin = run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    assert!(run.table.is_empty());
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert_eq!(sorted(&run.table), before);
    assert!(run.table.physical(Handle(7)).is_some());
}

#[test]
fn the_last_release_of_a_primary_context_frees_what_it_owns() {
    let mut run = Run::default();
    run.on(1, Kind::PrimaryRetain, [9, 0, 0, 0]);
    run.on(1, Kind::PrimaryRetain, [9, 0, 0, 0]);
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    run.on(1, Kind::PhysicalCreate, [7, 128, 1, 0]);
    run.on(1, Kind::PrimaryRelease, [0; 4]);
    assert_eq!(run.bytes(Object::DeviceAllocation), 64);
    let before = sorted(&run.table);
    let begin = run.on(1, Kind::PrimaryRelease, [0; 4]);
    assert_eq!(
        (
            run.bytes(Object::DeviceAllocation),
            run.bytes(Object::Physical)
        ),
        (0, 128)
    );
    run.on(1, Kind::Undone, [begin, 1, 0, 0]);
    assert_eq!(sorted(&run.table), before);
    run.on(1, Kind::PrimaryReset, [0; 4]);
    assert_eq!((run.table.len(), run.bytes(Object::Physical)), (1, 128));
}

#[test]
fn pinned_host_memory_goes_with_its_context_and_shares_no_free_with_device_memory() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    run.on(1, Kind::HostAlloc, [0x2000, 32, 9, 0]);
    run.on(1, Kind::HostAlloc, [0x3000, 16, 8, 0]);
    run.on(1, Kind::HostRegister, [0x4000, 8, 9, 0]);
    run.on(1, Kind::Free, [0x2000, 0, 0, 0]);
    run.on(1, Kind::HostFree, [0x4000, 0, 0, 0]);
    assert_eq!(run.bytes(Object::PinnedHost), 48);
    assert_eq!(run.bytes(Object::RegisteredHost), 8);
    run.on(1, Kind::ContextDestroy, [9, 0, 0, 0]);
    assert_eq!(run.bytes(Object::PinnedHost), 16);
    assert_eq!(run.table.len(), 1);
    run.on(1, Kind::HostFree, [0x3000, 0, 0, 0]);
    assert!(run.table.is_empty());
}

#[test]
fn a_reference_by_address_is_one_to_memory_that_only_a_mapping_holds() {
    let mut run = Run::default();
    run.on(1, Kind::PhysicalCreate, [7, 128, 1, 0]);
    run.on(1, Kind::Map, [0x1000, 128, 7, 0]);
    run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    run.on(1, Kind::PhysicalRetain, [7, 0x1040, 0, 0]);
    run.on(1, Kind::Unmap, [0x1000, 128, 0, 0]);
    assert_eq!(run.bytes(Object::Physical), 128);
    run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    assert!(run.table.is_empty());
    run.on(1, Kind::PhysicalRetain, [7, 0x1040, 0, 0]);
    assert_eq!(run.changes, [Change::Unknown { key: 7 }]);
}

#[test]
fn a_block_is_on_the_device_of_its_pool() {
    let mut table = LiveTable::default();
    for (seq, device, kind, words) in [
        (1, 3, Kind::PoolCreate, [0x9, 0, 0, 0]),
        (2, 0, Kind::PoolAlloc, [0x1000, 64, 0x9, 0]),
        (3, 0, Kind::PoolAlloc, [0x2000, 64, 0, 0]),
    ] {
        let event = Event {
            seq: Seq(seq),
            device: DeviceOrdinal(device),
            kind: kind as u16,
            words,
            ..Event::default()
        };
        table.apply(&event, |_| {});
    }
    let device = |key| table.get(Object::PoolBlock, key).map(|block| block.device);
    assert_eq!(device(0x1000), Some(DeviceOrdinal(3)));
    assert_eq!(device(0x2000), Some(DeviceOrdinal(0)));
}

#[test]
fn a_mapping_over_one_whose_unmap_was_lost_leaves_no_ghost() {
    // The same range, one that begins inside it, one that begins before it, and two that touch it from either side.
    for (again, bytes, overlaps) in [
        (0x10_0000, 0x2000, true),
        (0x10_1000, 0x2000, true),
        (0x0f_f000, 0x8000, true),
        (0x10_2000, 0x1000, false),
        (0x0f_f000, 0x1000, false),
    ] {
        let mut run = Run::default();
        run.on(1, Kind::PhysicalCreate, [7, 0x2000, 1, 0]);
        run.on(1, Kind::Map, [0x10_0000, 0x2000, 7, 0]);
        run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
        run.on(1, Kind::PhysicalCreate, [8, 0x8000, 1, 0]);
        run.on(1, Kind::Map, [again, bytes, 8, 0]);
        let implicit = run
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Died { implicit: true, .. }))
            .count();
        assert_eq!(implicit, if overlaps { 2 } else { 0 }, "{again:x}");
        run.on(1, Kind::PhysicalRelease, [8, 0, 0, 0]);
        run.on(1, Kind::Unmap, [again, bytes, 0, 0]);
        assert_eq!(run.table.is_empty(), overlaps, "{again:x}");
    }
}

#[test]
fn a_handle_that_comes_again_was_released_out_of_sight() {
    let mut run = Run::default();
    run.on(1, Kind::PhysicalCreate, [7, 128, 1, 0]);
    run.on(1, Kind::PhysicalRetain, [7, 0, 0, 0]);
    run.on(1, Kind::PhysicalCreate, [7, 256, 1, 0]);
    assert_eq!(run.bytes(Object::Physical), 256);
    assert!(matches!(
        run.changes[..],
        [Change::Died { implicit: true, .. }, Change::Born(_)]
    ));
    run.on(1, Kind::Map, [0x1000, 256, 7, 0]);
    run.on(1, Kind::PhysicalCreate, [7, 64, 1, 0]);
    assert_eq!(run.bytes(Object::Physical), 320);
    run.on(1, Kind::Unmap, [0x1000, 256, 0, 0]);
    run.on(1, Kind::PhysicalRelease, [7, 0, 0, 0]);
    assert!(run.table.is_empty());
}

#[test]
fn a_release_does_not_end_a_context_that_was_there_before_it_was_seen() {
    let mut run = Run::default();
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    run.on(1, Kind::PrimaryRetain, [9, 0, 0, 0]);
    run.on(1, Kind::PrimaryRelease, [0; 4]);
    assert_eq!(run.bytes(Object::DeviceAllocation), 64);
    // A reset asks nobody, and neither does the destruction of a context that is named.
    run.on(1, Kind::PrimaryReset, [0; 4]);
    assert!(run.table.is_empty());
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 9, 64]);
    run.on(1, Kind::DeviceAlloc, [0x2000, 64, 0, 64]);
    run.on(1, Kind::ContextDestroy, [9, 0, 0, 0]);
    assert_eq!(run.bytes(Object::DeviceAllocation), 64);
}

#[test]
fn a_handle_equal_to_an_address_changes_nothing() {
    let mut run = Run::default();
    run.on(1, Kind::ContextCreate, [0x1000, 0, 0, 0]);
    run.on(1, Kind::DeviceAlloc, [0x1000, 64, 0x1000, 64]);
    run.on(1, Kind::PhysicalCreate, [0x1000, 128, 1, 0]);
    run.on(1, Kind::PoolCreate, [0x1000, 0, 0, 0]);
    run.on(1, Kind::BlockAlloc, [0x1000, 16, 16, 64]);
    assert_eq!(run.table.len(), 5);
    run.on(1, Kind::Free, [0x1000, 0, 0, 0]);
    assert_eq!(run.table.len(), 4);
}

fn sorted(table: &LiveTable) -> Vec<LiveObject> {
    let mut all: Vec<LiveObject> = table.iter().copied().collect();
    all.sort_by_key(|object| (object.object, object.key));
    all
}
