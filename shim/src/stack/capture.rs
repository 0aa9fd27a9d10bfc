//! The stack of this thread, now, as an id.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gpumem_wire::{Frame, StackId};

use super::fold::Fold;
use super::intern;
use super::merge::{Resolve, Sources};
use super::module::{Desk, ModuleCache};
use super::native::replay::DEEPEST;
use super::native::walker::{Found, Walker};
use super::native::{Registers, object, rules};
use super::python::{self, LineCache, PythonFrame, PythonStack};
use super::scratch::{self, Scratch};

/// What a hook wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Native frames up to the innermost interpreter frame, all Python frames, and the native frames outside of them
    /// (with [`set_full_native`], those in between as well).
    Full,
    /// Python frames alone: for marks, where the line of the program is the point.
    PythonOnly,
}

static FULL_NATIVE: AtomicBool = AtomicBool::new(false);
static UNSUPPORTED: AtomicU64 = AtomicU64::new(0);
static LOST: AtomicU64 = AtomicU64::new(0);

/// Whether native frames between interpreter frames are kept.
pub(crate) fn set_full_native(on: bool) {
    FULL_NATIVE.store(on, Ordering::Relaxed);
}

/// What the capturing of stacks has come to so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Stacks captured.
    pub(crate) captures: u64,
    /// Unwind rules made from `.eh_frame`.
    pub(crate) rule_misses: u64,
    /// Stacks that got the overflow id.
    pub(crate) overflows: u64,
    /// New stacks that are not the thread's own, such as a coroutine's: without native frames.
    pub(crate) unsupported: u64,
    /// New stacks whose native frames end early, in code without unwind information (generated code, mostly).
    pub(crate) lost: u64,
}

/// The counters of this process.
pub(crate) fn counters() -> Counters {
    Counters {
        captures: scratch::captures(),
        rule_misses: rules::misses(),
        overflows: intern::overflows(),
        unsupported: UNSUPPORTED.load(Ordering::Relaxed),
        lost: LOST.load(Ordering::Relaxed),
    }
}

/// The stack of the calling thread without the shim's own frames, as an id. Its definition, and those of the modules and code
/// objects in it, are in the arena when this returns.
///
/// Must not be entered again on the same thread before it returned (by a signal handler, say): the hooks' guard sees to it.
#[inline(never)]
pub(crate) fn capture(want: Want) -> StackId {
    let Some(block) = scratch::mine() else {
        return StackId::OVERFLOW;
    };
    // SAFETY: a thread's block is mapped until the thread's end.
    let block = unsafe { block.as_ref() };
    block.count();
    // SAFETY: this thread's own, and the guard named above keeps it from being borrowed twice.
    let scratch = unsafe { &mut *block.scratch() };
    let start = Registers::here();
    // An interpreter is found while the first stack through it is resolved: that stack is then taken again.
    for _ in 0..2 {
        let python_was_known = python::is_known();
        let id = match want {
            Want::Full => full(scratch, start),
            Want::PythonOnly if python_was_known => python_only(scratch),
            Want::PythonOnly => {
                full(scratch, start);
                StackId::NONE
            }
        };
        if python_was_known || !python::is_known() {
            return id;
        }
    }
    StackId::NONE
}

/// Whether `address`, of this thread's stack, lies in a frame of this library's that is still running and has called code of
/// others, which led here. True where that cannot be told: on another stack than the thread's own, or behind code that cannot
/// be walked through.
///
/// May be asked at any time, also from within a capture.
#[cold]
#[inline(never)]
pub(crate) fn led_here_from(address: u64) -> bool {
    let Some(block) = scratch::mine() else {
        return true;
    };
    // SAFETY: a thread's block is mapped until the thread's end. The bounds are written by this thread alone, when it takes
    // the block; a capture that is under way reads them.
    let bounds = unsafe { (&raw const (*block.as_ref().scratch()).bounds).read() };
    let own = own_text();
    let Some(mut walker) = Walker::new(Registers::here(), bounds, rules::epoch()) else {
        return true;
    };
    let mut met_others = false;
    for _ in 0..DEEPEST {
        match walker.advance() {
            Found::Inner(step) => {
                let is_own = own.contains(&step.at.ip);
                met_others |= !is_own;
                if step.contains(address) {
                    return is_own && met_others;
                }
            }
            Found::Last { lost, .. } => return lost,
        }
    }
    true
}

#[inline(always)]
fn full(scratch: &mut Scratch, start: Registers) -> StackId {
    let (era, epoch) = (intern::era(), rules::epoch());
    let full_native = FULL_NATIVE.load(Ordering::Relaxed);
    let bounds = scratch.bounds;
    let mut fold = Fold::new();
    let python = PythonStack::of_this_thread(&bounds, &mut fold);
    let (innermost, outermost) = match &python {
        Some(stack) if !full_native => (stack.innermost_entry, stack.outermost_entry),
        _ => (None, None),
    };
    scratch.replay.walk(
        start,
        innermost.unwrap_or(u64::MAX),
        bounds,
        epoch,
        &mut fold,
    );
    if let Some(entry) = outermost {
        fold.word(scratch.outer.hash(entry, start, bounds, epoch));
    }
    let hash = fold.finish();
    if let Some(id) = scratch.ids.get(hash, era) {
        return id;
    }
    let sources = Sources {
        start,
        bounds,
        epoch,
        own: own_text(),
        python,
        full_native,
    };
    resolve(scratch, &sources, hash, era)
}

#[inline(always)]
fn python_only(scratch: &mut Scratch) -> StackId {
    let era = intern::era();
    let mut fold = Fold::new();
    // Tells this stack from a full one with the same words.
    fold.word(u64::MAX);
    let Some(python) = PythonStack::of_this_thread(&scratch.bounds, &mut fold) else {
        return StackId::NONE;
    };
    let hash = fold.finish();
    scratch
        .ids
        .get(hash, era)
        .unwrap_or_else(|| resolve_python(scratch, &python, hash, era))
}

#[cold]
#[inline(never)]
fn resolve(scratch: &mut Scratch, sources: &Sources, hash: u64, era: u32) -> StackId {
    if !sources.bounds.holds_word(sources.start.sp) {
        UNSUPPORTED.fetch_add(1, Ordering::Relaxed);
    }
    let python_was_known = python::is_known();
    let mut resolver = Resolver {
        modules: &mut scratch.modules,
        lines: &mut scratch.lines,
        desk: &mut scratch.desk,
        epoch: sources.epoch,
    };
    scratch.merged.merge(sources, &mut resolver);
    if scratch.merged.lost {
        LOST.fetch_add(1, Ordering::Relaxed);
        // The interpreter may be where the walk did not come.
        python::look_everywhere();
    }
    if python_was_known != python::is_known() {
        // To be taken again, with Python frames.
        return StackId::NONE;
    }
    intern_merged(scratch, hash, era)
}

#[cold]
#[inline(never)]
fn resolve_python(scratch: &mut Scratch, python: &PythonStack, hash: u64, era: u32) -> StackId {
    let mut resolver = Resolver {
        modules: &mut scratch.modules,
        lines: &mut scratch.lines,
        desk: &mut scratch.desk,
        epoch: rules::epoch(),
    };
    scratch.merged.python_only(python, &mut resolver);
    intern_merged(scratch, hash, era)
}

fn intern_merged(scratch: &mut Scratch, hash: u64, era: u32) -> StackId {
    if scratch.merged.frames().is_empty() {
        return StackId::NONE;
    }
    let id = intern::stack_id(
        scratch.merged.frames(),
        scratch.merged.left_out,
        &mut scratch.desk.encoded,
    );
    scratch.ids.put(hash, era, id);
    id
}

struct Resolver<'a> {
    modules: &'a mut ModuleCache,
    lines: &'a mut LineCache,
    desk: &'a mut Desk,
    epoch: u64,
}

impl Resolve for Resolver<'_> {
    fn native(&mut self, address: u64) -> Frame {
        self.modules.frame(address, self.epoch, self.desk)
    }

    fn python(&mut self, frame: &PythonFrame) -> Option<Frame> {
        self.lines.frame(frame, self.desk)
    }
}

/// The addresses of the library that this code is in.
fn own_text() -> Range<u64> {
    static START: AtomicU64 = AtomicU64::new(0);
    static END: AtomicU64 = AtomicU64::new(0);
    // The end is stored last (release): who sees it sees the start.
    let end = END.load(Ordering::Acquire);
    if end != 0 {
        return START.load(Ordering::Relaxed)..end;
    }
    let own =
        object::find(capture as *const () as u64).map_or(0..0, |object| object.start..object.end);
    START.store(own.start, Ordering::Relaxed);
    END.store(own.end, Ordering::Release);
    own
}

/// A library was closed: rules and ids that hang on addresses are void. To be called after the real `dlclose` returned.
pub(crate) fn bump_epoch() {
    rules::next_epoch();
    intern::next_era();
}
