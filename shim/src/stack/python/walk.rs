//! The chain of Python frames of this thread.

use core::sync::atomic::Ordering;

use super::layout::{Entries, Layout, Top};
use super::memory::{Direct, Memory, Window};
use super::{GIL_HOLDER_GETTER, THREAD_STATE_GETTER, layout, python_is_finalising};
use crate::stack::fold::Fold;
use crate::stack::native::Bounds;

/// Frames of one chain at most: a bound on the time of a hook, and on a chain that is not one.
const DEEPEST: u32 = 100_000;

/// The Python stack of this thread, as seen by one walk.
#[derive(Clone, Copy)]
pub(crate) struct PythonStack {
    layout: &'static Layout,
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
    /// instructions, so that address stands for both. `window` is opened if the interpreter's end may come in between.
    /// `None`: no interpreter, none that runs on this thread, or one that is being taken down.
    #[inline(always)]
    pub(crate) fn of_this_thread(
        main_thread: bool,
        bounds: &Bounds,
        window: &mut Window,
        fold: &mut Fold,
    ) -> Option<Self> {
        let layout = layout()?;
        window.close();
        if python_is_finalising() {
            return None;
        }
        let thread_state = thread_state();
        if thread_state == 0 {
            return None;
        }
        if main_thread || holds_the_gil(thread_state) {
            Self::walk(layout, thread_state, bounds, &mut Direct, fold)
        } else {
            Self::walk_apart(layout, thread_state, bounds, window, fold)
        }
    }

    /// Of a thread that does not keep the interpreter from ending.
    #[inline(never)]
    fn walk_apart(
        layout: &'static Layout,
        thread_state: u64,
        bounds: &Bounds,
        window: &mut Window,
        fold: &mut Fold,
    ) -> Option<Self> {
        window.open(*bounds, thread_state);
        let mut walked = *fold;
        let stack = Self::walk(layout, thread_state, bounds, window, &mut walked);
        // The flag is set before anything is freed: not set now, then all that was read was alive.
        if python_is_finalising() {
            return None;
        }
        *fold = walked;
        stack
    }

    #[inline(always)]
    fn walk(
        layout: &'static Layout,
        thread_state: u64,
        bounds: &Bounds,
        memory: &mut impl Memory,
        fold: &mut Fold,
    ) -> Option<Self> {
        // SAFETY: this thread's state; its `cframe` points into itself or to this thread's stack.
        let (cframe, frame) = unsafe {
            match layout.top {
                Top::Frame { of_thread } => (0, memory.read(thread_state + of_thread)?),
                Top::CFrame { of_thread, frame } => {
                    let cframe: u64 = memory.read(thread_state + of_thread)?;
                    if cframe == 0 {
                        return None;
                    }
                    (cframe, memory.read::<u64>(cframe.wrapping_add(frame))?)
                }
            }
        };
        if frame == 0 {
            return None;
        }
        let mut stack = Self {
            layout,
            cframe,
            frame,
            depth: 0,
            innermost_entry: None,
            outermost_entry: None,
        };
        stack.measure(bounds, memory, fold)?;
        Some(stack)
    }

    /// `None`: the chain could not be read to its end.
    #[inline(always)]
    fn measure(
        &mut self,
        bounds: &Bounds,
        memory: &mut impl Memory,
        fold: &mut Fold,
    ) -> Option<()> {
        let layout = self.layout;
        let entry_owner = match layout.entries {
            Entries::Frames { owner } => owner,
            Entries::CFrames { previous, .. } => {
                self.measure_cframes(previous, bounds, memory)?;
                u8::MAX
            }
        };
        let mut frame = self.frame;
        while frame != 0 && self.depth < DEEPEST {
            // SAFETY: a frame of this thread's chain, which nobody changes while the thread is here (see the module).
            unsafe {
                if memory.read::<u8>(frame.wrapping_add(layout.frame_owner))? == entry_owner {
                    self.entry(frame, bounds);
                } else {
                    fold.word(memory.read(frame.wrapping_add(layout.frame_instruction))?);
                    self.depth += 1;
                }
                frame = memory.read(frame.wrapping_add(layout.frame_previous))?;
            }
        }
        Some(())
    }

    #[inline(always)]
    fn measure_cframes(
        &mut self,
        previous: u64,
        bounds: &Bounds,
        memory: &mut impl Memory,
    ) -> Option<()> {
        let mut cframe = self.cframe;
        for _ in 0..DEEPEST {
            // SAFETY: a link of this thread's chain of C frames; the last one lies in the thread state.
            let outer: u64 = unsafe { memory.read(cframe.wrapping_add(previous))? };
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
    pub(crate) fn items(&self) -> Items {
        Items {
            layout: self.layout,
            frame: self.frame,
            cframe: self.cframe,
            left: DEEPEST,
            entry_after_frame: None,
        }
    }
}

/// A chain, on the way outwards.
pub(crate) struct Items {
    layout: &'static Layout,
    frame: u64,
    cframe: u64,
    left: u32,
    entry_after_frame: Option<u64>,
}

impl Items {
    /// The next piece.
    pub(crate) fn next(&mut self, memory: &mut impl Memory) -> Option<Item> {
        if let Some(entry) = self.entry_after_frame.take() {
            return Some(Item::Entry(entry));
        }
        self.left = self.left.checked_sub(1)?;
        if self.frame == 0 {
            return None;
        }
        let (layout, at) = (self.layout, self.frame);
        // SAFETY: as in `measure`: the same chain, still unchanged.
        unsafe {
            self.frame = memory.read(at.wrapping_add(layout.frame_previous))?;
            let owner: u8 = memory.read(at.wrapping_add(layout.frame_owner))?;
            match layout.entries {
                Entries::Frames { owner: entry_owner } if owner == entry_owner => {
                    return Some(Item::Entry(at));
                }
                Entries::Frames { .. } => {}
                Entries::CFrames { previous, is_entry } => {
                    if memory.read::<u8>(at.wrapping_add(is_entry))? != 0 && self.cframe != 0 {
                        self.entry_after_frame = Some(self.cframe);
                        self.cframe = memory.read(self.cframe.wrapping_add(previous))?;
                    }
                }
            }
            Some(Item::Frame(PythonFrame {
                code: memory.read(at.wrapping_add(layout.frame_code))?,
                instruction: memory.read(at.wrapping_add(layout.frame_instruction))?,
                owner,
            }))
        }
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
