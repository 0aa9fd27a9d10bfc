//! The chain of Python frames of this thread.

use core::sync::atomic::Ordering;

use super::layout::{Entries, Layout};
use super::{THREAD_STATE_GETTER, layout, read};
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
    /// instructions, so that address stands for both. `None`: no interpreter, or none that runs on this thread.
    #[inline(always)]
    pub(crate) fn of_this_thread(bounds: &Bounds, fold: &mut Fold) -> Option<Self> {
        let layout = layout()?;
        // Relaxed: ordered by the layout's acquire.
        let getter = THREAD_STATE_GETTER.load(Ordering::Relaxed);
        // SAFETY: `PyThreadState *PyGILState_GetThisThreadState(void)` reads a thread-specific value, GIL or not. It was
        // stored before the layout.
        let thread_state =
            unsafe { core::mem::transmute::<usize, extern "C" fn() -> u64>(getter)() };
        if thread_state == 0 {
            return None;
        }
        // SAFETY: a live thread state of this thread; its `cframe` points to itself or to this thread's stack.
        let (cframe, frame) = unsafe {
            let cframe: u64 = read(thread_state + layout.thread_cframe);
            if cframe == 0 {
                return None;
            }
            (cframe, read::<u64>(cframe + layout.cframe_frame))
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
        stack.measure(bounds, fold);
        Some(stack)
    }

    #[inline(always)]
    fn measure(&mut self, bounds: &Bounds, fold: &mut Fold) {
        let layout = self.layout;
        let entry_owner = match layout.entries {
            Entries::Frames { owner } => owner,
            Entries::CFrames { previous, .. } => {
                self.measure_cframes(previous, bounds);
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
    }

    #[inline(always)]
    fn measure_cframes(&mut self, previous: u64, bounds: &Bounds) {
        let mut cframe = self.cframe;
        for _ in 0..DEEPEST {
            // SAFETY: a link of this thread's chain of C frames; the last one lies in the thread state.
            let outer: u64 = unsafe { read(cframe + previous) };
            if outer == 0 {
                return;
            }
            self.entry(cframe, bounds);
            cframe = outer;
        }
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
        let layout = self.layout;
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
                            cframe = read(cframe + previous);
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
