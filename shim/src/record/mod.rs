//! From a hook to the drainer: a number, a time, a place in a ring.
//!
//! A hook calls [`event`]; the drainer reads [`ring::Rings`] in the order of the numbers, which [`order`] makes safe without
//! a lock.

pub(crate) mod clock;
pub(crate) mod order;
pub(crate) mod ring;
pub(crate) mod thread;

use gpumem_wire::define::BorrowedDefinition;
use gpumem_wire::{ApiId, DeviceOrdinal, Event, Flags, Kind, Seq, StackId, ThreadId};

use crate::guard::Watch;
use crate::{process, stack};

/// What a hook knows of an event; the number, the time and the thread are added here.
#[derive(Clone, Copy)]
pub(crate) struct Draft {
    /// What happened.
    pub(crate) kind: Kind,
    /// The hook's row in the table.
    pub(crate) api: ApiId,
    /// On which device.
    pub(crate) device: DeviceOrdinal,
    /// From where.
    pub(crate) stack: StackId,
    /// Facts.
    pub(crate) flags: Flags,
    /// By kind.
    pub(crate) words: [u64; 4],
}

/// Sends a definition that is not part of a stack: a thread, a device. Longer ones than the buffer are left out.
pub(crate) fn define(definition: &BorrowedDefinition<'_>) {
    let mut buffer = [0u8; 512];
    if let Ok(length) = definition.encode_into(&mut buffer)
        && let Some(record) = buffer.get(..length)
    {
        stack::arena::append(record);
    }
}

/// Records one event and gives its number; `None` if it was lost (and counted). The watch shows that this thread is inside a
/// hook and no other event of it can come between.
#[inline]
pub(crate) fn event(_watch: &Watch, draft: Draft) -> Option<Seq> {
    if !process::awake() {
        return None;
    }
    // A free that is lost makes the live map wrong for ever, an allocation that is lost only hides itself: what can destroy
    // may use the reserve of chunks.
    let urgent = matches!(
        draft.kind,
        Kind::Free
            | Kind::BlockFree
            | Kind::Undone
            | Kind::PhysicalRelease
            | Kind::Unmap
            | Kind::Unreserve
            | Kind::ContextDestroy
            | Kind::PrimaryRelease
            | Kind::PrimaryReset
            | Kind::PoolDestroy
            | Kind::Finalising
            | Kind::ExitHandler
    );
    let Some(ring) = thread::ring() else {
        ring::LOST.count(urgent);
        return None;
    };
    ring.push(urgent, |seq, thread: ThreadId| Event {
        seq,
        time: clock::now(),
        thread,
        stack: draft.stack,
        kind: draft.kind as u16,
        api: draft.api,
        device: draft.device,
        flags: draft.flags,
        words: draft.words,
    })
}
