//! The chain of Python frames of this thread.

use core::sync::atomic::Ordering;

use super::layout::{Entries, Layout, Top};
use super::{GIL_HOLDER_GETTER, THREAD_STATE_GETTER, layout, python_is_finalising, read};
use crate::stack::fold::Fold;
use crate::stack::native::Bounds;

/// Frames of one chain at most: a bound on the time of a hook, and on a chain that is not one.
const DEEPEST: u32 = 100_000;

/// The Python stack of this thread, as seen by one walk.
#[derive(Clone, Copy)]
pub(crate) struct PythonStack {
    layout: &'static Layout,
    memory: StateMemory,
    cframe: u64,
    frame: u64,
    /// Frames in the chain.
    pub(crate) depth: u32,
    /// An address inside the C frame of the innermost interpreter function, if that lies on this thread's stack.
    pub(crate) innermost_entry: Option<u64>,
    /// The same of the outermost.
    pub(crate) outermost_entry: Option<u64>,
}

/// One Python frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PythonFrame {
    /// The code object's address.
    pub(crate) code: u64,
    /// The address of the instruction.
    pub(crate) instruction: u64,
    /// `FRAME_OWNED_BY_...`.
    pub(crate) owner: u8,
}

/// What a chain is made of, innermost first.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item {
    /// A Python frame.
    Frame(PythonFrame),
    /// The frames before it were run by the interpreter function whose C frame contains this address; those after it called
    /// that function.
    Entry(u64),
}

impl PythonStack {
    /// The stack of this thread, with each frame's instruction address folded into `fold`: a code object contains its
    /// instructions, so that address stands for both. `None`: no interpreter, none that runs on this thread, or one that is
    /// being taken down.
    #[inline(always)]
    pub(crate) fn of_this_thread(bounds: &Bounds, fold: &mut Fold) -> Option<Self> {
        let layout = layout()?;
        if python_is_finalising() {
            return None;
        }
        let thread_state = thread_state();
        if thread_state == 0 {
            return None;
        }
        let memory = StateMemory::of(thread_state);
        // SAFETY: this thread's state; its `cframe` points into itself or to this thread's stack.
        let (cframe, frame) = unsafe {
            match layout.top {
                Top::Frame { of_thread } => (0, memory.read(thread_state + of_thread)?),
                Top::CFrame { of_thread, frame } => {
                    let cframe = memory.read(thread_state + of_thread)?;
                    if cframe == 0 {
                        return None;
                    }
                    (cframe, memory.read(cframe + frame)?)
                }
            }
        };
        if frame == 0 {
            return None;
        }
        let mut stack = Self {
            layout,
            memory,
            cframe,
            frame,
            depth: 0,
            innermost_entry: None,
            outermost_entry: None,
        };
        let mut walked = *fold;
        stack.measure(bounds, &mut walked)?;
        *fold = walked;
        Some(stack)
    }

    /// `None`: the interpreter's end began.
    #[inline(always)]
    fn measure(&mut self, bounds: &Bounds, fold: &mut Fold) -> Option<()> {
        let layout = self.layout;
        let entry_owner = match layout.entries {
            Entries::Frames { owner } => owner,
            Entries::CFrames { previous, .. } => {
                self.measure_cframes(previous, bounds)?;
                u8::MAX
            }
        };
        let mut frame = self.frame;
        while frame != 0 && self.depth < DEEPEST {
            // SAFETY: a frame of this thread's chain, which nobody changes while the thread is here (see the module).
            unsafe {
                if read::<u8>(frame + layout.frame_owner) == entry_owner {
                    self.entry(frame, bounds);
                } else {
                    fold.word(read(frame + layout.frame_instruction));
                    self.depth += 1;
                }
                frame = read(frame + layout.frame_previous);
            }
        }
        Some(())
    }

    #[inline(always)]
    fn measure_cframes(&mut self, previous: u64, bounds: &Bounds) -> Option<()> {
        let mut cframe = self.cframe;
        for _ in 0..DEEPEST {
            // SAFETY: a link of this thread's chain of C frames; the last one lies in the thread state.
            let outer = unsafe { self.memory.read(cframe + previous)? };
            if outer == 0 {
                break;
            }
            self.entry(cframe, bounds);
            cframe = outer;
        }
        Some(())
    }

    #[inline(always)]
    fn entry(&mut self, address: u64, bounds: &Bounds) {
        if bounds.holds_word(address) {
            self.innermost_entry.get_or_insert(address);
            self.outermost_entry = Some(address);
        }
    }

    /// The chain again, piece by piece. Must be used by the thread that made it, before that thread returns to Python.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item> + use<> {
        let (layout, memory) = (self.layout, self.memory);
        let (mut frame, mut cframe) = (self.frame, self.cframe);
        let mut left = DEEPEST;
        let mut entry_after_frame = None;
        core::iter::from_fn(move || {
            if let Some(entry) = entry_after_frame.take() {
                return Some(Item::Entry(entry));
            }
            left = left.checked_sub(1)?;
            if frame == 0 {
                return None;
            }
            // SAFETY: as in `measure`: the same chain, still unchanged.
            unsafe {
                let at = frame;
                frame = read(at + layout.frame_previous);
                let owner: u8 = read(at + layout.frame_owner);
                match layout.entries {
                    Entries::Frames { owner: entry_owner } if owner == entry_owner => {
                        return Some(Item::Entry(at));
                    }
                    Entries::Frames { .. } => {}
                    Entries::CFrames { previous, is_entry } => {
                        if read::<u8>(at + is_entry) != 0 && cframe != 0 {
                            entry_after_frame = Some(cframe);
                            cframe = memory.read(cframe + previous)?;
                        }
                    }
                }
                Some(Item::Frame(PythonFrame {
                    code: read(at + layout.frame_code),
                    instruction: read(at + layout.frame_instruction),
                    owner,
                }))
            }
        })
    }
}

/// Words of this thread's state.
///
/// The interpreter's end frees the states of all threads but its own, and keeps their frames (checked for 3.11 to 3.13). It
/// says so first. So a word of the state counts only if the end had not begun after it was read, or if this thread holds the
/// GIL, which keeps the end from beginning. The memory itself is a small block of the C library's heap, which stays mapped.
#[derive(Clone, Copy)]
pub(super) struct StateMemory {
    start: u64,
    is_safe: bool,
}

impl StateMemory {
    /// Bytes of a state up to the end of what is read of it, at most: `root_cframe` ends it in 3.11.
    const BYTES: u64 = 360;

    #[inline(always)]
    pub(super) fn of(thread_state: u64) -> Self {
        Self {
            start: thread_state,
            is_safe: holds_the_gil(thread_state),
        }
    }

    /// A word at `address`; `None` where it lies in a state that may have been freed by now.
    ///
    /// # Safety
    /// `address` is a word of this thread's state or of its stack.
    #[inline(always)]
    pub(super) unsafe fn read(self, address: u64) -> Option<u64> {
        // SAFETY: by the contract above.
        let word = unsafe { read(address) };
        let may_vanish = !self.is_safe && address.wrapping_sub(self.start) < Self::BYTES;
        (!(may_vanish && python_is_finalising())).then_some(word)
    }
}

/// This thread's state, 0 for none. Only once there is a layout.
#[inline(always)]
pub(super) fn thread_state() -> u64 {
    // Relaxed: ordered by the layout's acquire.
    let getter = THREAD_STATE_GETTER.load(Ordering::Relaxed);
    // SAFETY: `PyThreadState *PyGILState_GetThisThreadState(void)` reads a thread-specific value, GIL or not. It was stored
    // before the layout.
    unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(getter)() }
}

/// Whether this thread, whose state is given, keeps others from running Python and from ending it.
#[inline(always)]
pub(super) fn holds_the_gil(thread_state: u64) -> bool {
    // Relaxed: ordered by the layout's acquire.
    let getter = GIL_HOLDER_GETTER.load(Ordering::Relaxed);
    if getter == 0 {
        return false;
    }
    // SAFETY: `PyThreadState *PyThreadState_GetUnchecked(void)` reads one variable of the process (3.11) or of the thread,
    // GIL or not: the state that holds the GIL. It was stored before the layout.
    let holder = unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(getter)() };
    holder == thread_state
}
