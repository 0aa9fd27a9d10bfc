//! One stack from two: the frames of the machine and those of Python, innermost first.
//!
//! The interpreter is a C function that runs many Python frames. Each time it was entered it left an object on the C stack, so
//! the C frame that contains that object's address is an interpreter frame, and the Python frames of that entry stand in its
//! place. No symbol is looked at.

use gpumem_wire::Frame;

use super::native::replay::DEEPEST;
use super::native::walker::{Found, Walker};
use super::native::{Bounds, Registers};
use super::python::{Item, PythonFrame, PythonStack};

/// Native frames that a stack keeps: this many innermost and outermost ones.
const NATIVE_KEPT: (u32, u32) = (192, 64);
/// Python frames that a stack keeps.
const PYTHON_KEPT: (u32, u32) = (768, 256);
/// All that, and a marker for each gap. Python frames alone can be cut more than once in an interleaved stack.
const CAPACITY: usize = 1300;

/// A merged stack. All zeros is an empty one.
pub(crate) struct Merged {
    length: usize,
    /// Frames that were left out.
    pub(crate) left_out: u32,
    /// Whether native frames are missing at the outer end, behind code without unwind information.
    pub(crate) lost: bool,
    frames: [core::mem::MaybeUninit<Frame>; CAPACITY],
}

/// What a stack is merged from.
pub(crate) struct Sources {
    /// The innermost frame.
    pub(crate) start: Registers,
    /// This thread's.
    pub(crate) bounds: Bounds,
    /// The rule table's.
    pub(crate) epoch: u64,
    /// The shim's own text: innermost frames in it are left out.
    pub(crate) own: core::ops::Range<u64>,
    /// The Python stack, if there is one.
    pub(crate) python: Option<PythonStack>,
    /// Whether native frames between interpreter frames are kept.
    pub(crate) full_native: bool,
}

/// Turns what was found in memory into frames.
pub(crate) trait Resolve {
    /// The frame of a return address.
    fn native(&mut self, address: u64) -> Frame;
    /// The frame of a Python frame, if it is one to show.
    fn python(&mut self, frame: &PythonFrame) -> Option<Frame>;
}

/// What is met on the way outwards.
enum Native {
    /// A frame to show: its return address.
    Frame(u64),
    /// A frame of the interpreter: here belong the Python frames up to this entry, or all that are left.
    Interpreter(Option<u64>),
    /// The walk could not go on to the outermost frame.
    Lost,
}

/// Counts frames of one kind, to keep the first and the last of them.
struct Keep {
    total: u32,
    seen: u32,
    kept: (u32, u32),
}

enum Verdict {
    Keep,
    Mark,
    Drop,
}

impl Keep {
    fn next(&mut self) -> Verdict {
        let index = self.seen;
        self.seen += 1;
        let (first, last) = self.kept;
        if index < first || self.total <= first + last || index >= self.total - last {
            Verdict::Keep
        } else if index == first {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }
}

impl Merged {
    /// The frames.
    pub(crate) fn frames(&self) -> &[Frame] {
        let written = self.frames.get(..self.length).unwrap_or(&[]);
        // SAFETY: the first `length` frames were written by `push`.
        unsafe { core::slice::from_raw_parts(written.as_ptr().cast(), written.len()) }
    }

    /// The Python frames alone.
    pub(crate) fn python_only(&mut self, python: &PythonStack, resolve: &mut impl Resolve) {
        self.clear();
        let mut keep = python_keep(Some(python));
        for item in python.items() {
            if let Item::Frame(frame) = item {
                self.push_python(&frame, &mut keep, resolve);
            }
        }
    }

    /// Merges.
    pub(crate) fn merge(&mut self, sources: &Sources, resolve: &mut impl Resolve) {
        let native_total = self.merge_knowing(0, sources, resolve);
        // How many native frames there are is known only now; seldom does it matter.
        if native_total > NATIVE_KEPT.0 + NATIVE_KEPT.1 {
            self.merge_knowing(native_total, sources, resolve);
        }
    }

    /// Merges, leaving out what is too much of `native_total` native frames. Gives their true number.
    fn merge_knowing(
        &mut self,
        native_total: u32,
        sources: &Sources,
        resolve: &mut impl Resolve,
    ) -> u32 {
        self.clear();
        let mut native = Keep {
            total: native_total,
            seen: 0,
            kept: NATIVE_KEPT,
        };
        let mut python = python_keep(sources.python.as_ref());
        let mut items = sources.python.iter().flat_map(PythonStack::items);
        sources.each_native(|found| match found {
            Native::Frame(ip) => self.push(native.next(), || resolve.native(ip)),
            Native::Lost => self.lost = true,
            Native::Interpreter(entry) => {
                for item in &mut items {
                    match item {
                        Item::Frame(frame) => self.push_python(&frame, &mut python, resolve),
                        Item::Entry(reached) if entry == Some(reached) => break,
                        Item::Entry(_) => {}
                    }
                }
            }
        });
        native.seen
    }

    fn clear(&mut self) {
        self.length = 0;
        self.left_out = 0;
        self.lost = false;
    }

    fn push_python(&mut self, frame: &PythonFrame, keep: &mut Keep, resolve: &mut impl Resolve) {
        let verdict = keep.next();
        if let Verdict::Keep = verdict {
            if let Some(frame) = resolve.python(frame) {
                self.push(verdict, || frame);
            }
        } else {
            self.push(verdict, || Frame::Elided);
        }
    }

    fn push(&mut self, verdict: Verdict, frame: impl FnOnce() -> Frame) {
        let frame = match verdict {
            Verdict::Keep => frame(),
            Verdict::Mark => Frame::Elided,
            Verdict::Drop => {
                self.left_out += 1;
                return;
            }
        };
        if frame == Frame::Elided {
            self.left_out += 1;
        }
        if let Some(room) = self.frames.get_mut(self.length) {
            room.write(frame);
            self.length += 1;
        }
    }
}

fn python_keep(python: Option<&PythonStack>) -> Keep {
    Keep {
        total: python.map_or(0, |stack| stack.depth),
        seen: 0,
        kept: PYTHON_KEPT,
    }
}

impl Sources {
    /// Walks the native stack.
    fn each_native(&self, mut visit: impl FnMut(Native)) {
        let innermost = self.python.as_ref().and_then(|stack| stack.innermost_entry);
        let outermost = self.python.as_ref().and_then(|stack| stack.outermost_entry);
        let mut entries = self
            .python
            .iter()
            .flat_map(PythonStack::items)
            .filter_map(|item| match item {
                Item::Entry(entry) if self.bounds.holds_word(entry) => Some(entry),
                _ => None,
            });
        let mut entry = entries.next();
        let mut walker = Walker::new(self.start, self.bounds, self.epoch);
        let mut own = true;
        // Between the innermost and the outermost interpreter frame.
        let mut between = false;
        for _ in 0..DEEPEST {
            let (ip, step) = match walker.as_mut().map(Walker::advance) {
                Some(Found::Inner(step)) => (step.at.ip, Some(step)),
                Some(Found::Last { ip, lost }) => {
                    if lost {
                        visit(Native::Lost);
                    }
                    (ip, None)
                }
                None => break,
            };
            // Nothing is known of the extent of a frame that could not be left.
            let holds = |address: Option<u64>| match (step, address) {
                (Some(step), Some(address)) => step.contains(address),
                _ => false,
            };
            own &= self.own.contains(&ip);
            if own {
                // The innermost frames are the shim's.
            } else if self.full_native {
                if holds(entry) {
                    visit(Native::Interpreter(entry));
                    entry = entries.next();
                } else {
                    visit(Native::Frame(ip));
                }
            } else {
                if holds(innermost) {
                    visit(Native::Interpreter(None));
                    between = true;
                } else if !between {
                    visit(Native::Frame(ip));
                }
                between &= !holds(outermost);
            }
            if step.is_none() {
                break;
            }
        }
        // Where the walk did not come as far as the interpreter.
        visit(Native::Interpreter(None));
    }
}
