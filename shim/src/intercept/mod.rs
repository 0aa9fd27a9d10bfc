//! The doors in: how calls of the program come to us.
//!
//! [`table`] holds one row for each driver function that we watch; a row makes the exported symbol, the route and the check
//! of its signature. A program reaches a row in one of three ways: its symbol is bound to our export, `dlsym` ([`dlsym`]) or
//! `cuGetProcAddress` ([`proc_address`]) hands it out in place of the driver's. The family files ([`device`], [`host`],
//! [`pool`], [`vmm`], [`context`]) turn a call into events. [`torch`] is the door that is not CUDA, [`dlclose`] keeps stacks honest.
//!
//! A handler gets the real call as a closure, runs it exactly once whatever happens, and returns its result untouched.

pub(crate) mod context;
pub(crate) mod device;
pub(crate) mod dlclose;
pub(crate) mod dlsym;
pub(crate) mod host;
pub(crate) mod pool;
pub(crate) mod proc_address;
pub(crate) mod table;
pub(crate) mod torch;
pub(crate) mod vmm;

use gpumem_wire::{DeviceOrdinal, Flags, Kind, Object, Seq, StackId};

use crate::guard::Watch;
use crate::intercept::table::Row;
use crate::record::{self, Draft};
use crate::{config, process, stack};

/// `CUDA_SUCCESS`.
pub(crate) const SUCCESS: u32 = 0;

/// One call being watched: the row that it came through, and the proof that we may record.
pub(crate) struct Call<'a> {
    pub(crate) watch: &'a Watch,
    pub(crate) row: &'static Row,
}

impl Call<'_> {
    /// Records a birth with the caller's stack. The first one wakes the process.
    pub(crate) fn with_stack(
        &self,
        kind: Kind,
        device: DeviceOrdinal,
        words: [u64; 4],
    ) -> Option<Seq> {
        if !process::wake() {
            return None;
        }
        self.told_with_stack(kind, device, words)
    }

    /// Records something that is no birth, with the caller's stack.
    fn told_with_stack(&self, kind: Kind, device: DeviceOrdinal, words: [u64; 4]) -> Option<Seq> {
        if !process::awake() {
            return None;
        }
        process::notice_finalising(self.watch);
        let stack = match config::mode() {
            config::Mode::Full => stack::capture(stack::Want::Full),
            config::Mode::Ledger | config::Mode::Off => StackId::NONE,
        };
        self.push(kind, device, stack, words, Flags::default())
    }

    /// Records an event without a stack: a free.
    pub(crate) fn without_stack(
        &self,
        kind: Kind,
        device: DeviceOrdinal,
        words: [u64; 4],
    ) -> Option<Seq> {
        if !process::awake() {
            return None;
        }
        process::notice_finalising(self.watch);
        self.push(kind, device, StackId::NONE, words, flags_of_a_free())
    }

    /// Takes back what event `begun` announced. Nothing comes between the two.
    fn undone(&self, begun: Seq, status: u32) {
        if process::awake() {
            self.push(
                Kind::Undone,
                DeviceOrdinal::UNKNOWN,
                StackId::NONE,
                [begun.0, status.into(), 0, 0],
                Flags::default(),
            );
        }
    }

    fn push(
        &self,
        kind: Kind,
        device: DeviceOrdinal,
        stack: StackId,
        words: [u64; 4],
        mut flags: Flags,
    ) -> Option<Seq> {
        if self.row.per_thread {
            flags = flags.with(Flags::PER_THREAD_STREAM);
        }
        record::event(
            self.watch,
            Draft {
                kind,
                api: self.row.api(),
                device,
                stack,
                flags,
                words,
            },
        )
    }
}

/// What is known of the moment of a free.
#[inline(always)]
pub(crate) fn flags_of_a_free() -> Flags {
    if stack::python_is_collecting() {
        Flags::DURING_GC
    } else {
        Flags::default()
    }
}

/// Watches a call that creates: the event is taken after success, so that it has its number after the driver made the
/// object. `born` records it.
///
/// # Safety
/// `real` must be the real call with the program's own arguments.
#[inline(always)]
pub(crate) unsafe fn creating(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    born: impl FnOnce(&Call<'_>),
) -> u32 {
    let Some(watch) = Watch::enter() else {
        return real();
    };
    let status = real();
    if status == SUCCESS {
        watch.own(|| born(&Call { watch: &watch, row }));
    }
    status
}

/// As [`creating`], for memory: a failure is recorded too, with the bytes and the kind of object that were asked for.
///
/// # Safety
/// As [`creating`].
#[inline(always)]
pub(crate) unsafe fn allocating(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    (object, bytes): (Object, usize),
    born: impl FnOnce(&Call<'_>),
) -> u32 {
    let Some(watch) = Watch::enter() else {
        return real();
    };
    let status = real();
    watch.own(|| {
        let call = Call { watch: &watch, row };
        if status == SUCCESS {
            born(&call);
        } else {
            let device = match object {
                Object::PinnedHost | Object::RegisteredHost => DeviceOrdinal::HOST,
                _ => context::current_device(),
            };
            let words = [bytes as u64, status.into(), object as u64, 0];
            call.told_with_stack(Kind::AllocFailed, device, words);
        }
    });
    status
}

/// Watches a call that destroys: the event is taken before the real call, so that no other thread's new object at the same
/// place can have a smaller number, and taken back if the call fails.
///
/// # Safety
/// As [`creating`].
#[inline(always)]
pub(crate) unsafe fn destroying(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    begin: impl FnOnce(&Call<'_>) -> Option<Seq>,
) -> u32 {
    let Some(watch) = Watch::enter() else {
        return real();
    };
    let call = Call { watch: &watch, row };
    let begun = watch.own(|| begin(&call)).flatten();
    let status = real();
    if status != SUCCESS
        && let Some(begun) = begun
    {
        watch.own(|| call.undone(begun, status));
    }
    status
}

/// Reads what a call wrote through an out-parameter; `None` for a null pointer, which some calls allow.
///
/// # Safety
/// `pointer` is null or the program's own out-parameter, which the real call has written.
pub(crate) unsafe fn read_out<T: Copy>(pointer: *const T) -> Option<T> {
    // SAFETY: not null, and written by the real call just now.
    (!pointer.is_null()).then(|| unsafe { pointer.read_unaligned() })
}
