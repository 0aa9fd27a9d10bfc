//! Code objects and lines.
//!
//! A code object gets a number and a definition (its names are read once) the first time a stack goes through it. Its address
//! may be reused as soon as it is freed, so `PyCode_Type.tp_dealloc` is replaced: a code object that some stack used is
//! forgotten at the moment of its death, and the era changes.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use gpumem_wire::define::CodeDefinition;
use gpumem_wire::{CodeId, Definition, Frame, limits};

use super::layout::{self, Layout};
use super::{CODE_TYPE, PythonFrame, python_is_finalising, read, refuse};
use crate::stack::fold::mix;
use crate::stack::module::Desk;
use crate::stack::{intern, region};

/// Code objects that stacks went through, by address.
static CODES: Codes = Codes {
    slots: AtomicPtr::new(core::ptr::null_mut()),
    used: AtomicU32::new(0),
    next_id: AtomicU32::new(1),
};

const LOG2_SLOTS: u32 = 18;
const SLOTS: u64 = 1 << LOG2_SLOTS;
const PROBES: u64 = 64;

struct Codes {
    slots: AtomicPtr<Slot>,
    used: AtomicU32,
    next_id: AtomicU32,
}

/// A slot keeps its address for ever, since the address will be used again; its number goes when the code object dies.
struct Slot {
    code: AtomicU64,
    id: AtomicU32,
}

impl Codes {
    /// The slot of a code address; `claim` one if there is none.
    fn slot(&self, code: u64, claim: bool) -> Option<&Slot> {
        // Acquire pairs with the exchange in `create`.
        let mut slots = self.slots.load(Ordering::Acquire);
        if slots.is_null() {
            if !claim {
                return None;
            }
            slots = self.create()?;
        }
        let place = mix(code);
        for probe in 0..PROBES {
            let at = place.wrapping_add(probe) & (SLOTS - 1);
            // SAFETY: `slots` is an array of `SLOTS` zeroed slots that is never unmapped.
            let slot = unsafe { &*slots.add(at as usize) };
            // Relaxed: the address carries nothing; the number beside it is published on its own.
            let mut found = slot.code.load(Ordering::Relaxed);
            if found == 0 {
                if !claim || u64::from(self.used.load(Ordering::Relaxed)) >= SLOTS / 4 * 3 {
                    return None;
                }
                match slot
                    .code
                    .compare_exchange(0, code, Ordering::Relaxed, Ordering::Relaxed)
                {
                    Ok(_) => {
                        self.used.fetch_add(1, Ordering::Relaxed);
                        found = code;
                    }
                    Err(other) => found = other,
                }
            }
            if found == code {
                return Some(slot);
            }
        }
        None
    }

    #[cold]
    fn create(&self) -> Option<*mut Slot> {
        let size = size_of::<Slot>() * SLOTS as usize;
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

/// The number of a code object that is on this thread's stack. `None`: the table or the arena is full.
fn id(layout: &Layout, code: u64, desk: &mut Desk) -> Option<CodeId> {
    let slot = CODES.slot(code, true)?;
    // Acquire: the number's definition is in the arena. The number is this code object's and not a former one's: that one's
    // death cleared it, before the memory was freed and handed out again.
    let id = slot.id.load(Ordering::Acquire);
    if id != 0 {
        return Some(CodeId(id));
    }
    let id = CODES.next_id.fetch_add(1, Ordering::Relaxed);
    define(layout, code, CodeId(id), desk)?;
    // Two threads may define the same code object at once. Each uses its own number; the later one stays in the table.
    slot.id.store(id, Ordering::Release);
    Some(CodeId(id))
}

fn define(layout: &Layout, code: u64, id: CodeId, desk: &mut Desk) -> Option<()> {
    let (first, second) = desk.text.split_at_mut(limits::STRING_BYTES);
    // SAFETY: a living code object whose type was checked: its members are where the layout says, its names are strings.
    let (function, file, first_line) = unsafe {
        (
            string(layout, read(code + layout.code.qualified_name), first),
            string(layout, read(code + layout.code.file), second),
            read::<i32>(code + layout.code.first_line),
        )
    };
    let definition = CodeDefinition {
        id,
        function,
        file,
        first_line: u32::try_from(first_line).unwrap_or(0),
    };
    intern::define(&Definition::Code(definition), &mut desk.encoded).then_some(())
}

/// The lines of instructions that this thread resolved lately. All zeros is an empty cache.
pub(crate) struct LineCache {
    entries: [Line; 1024],
}

#[derive(Clone, Copy)]
struct Line {
    instruction: u64,
    /// Numbers are never given twice, so an entry of a code object that died is not met again.
    code: u32,
    line: u32,
}

impl LineCache {
    /// What a frame stands for. `None`: a frame that has not begun (Python's own tracebacks leave those out), or one that
    /// cannot be told.
    pub(crate) fn frame(&mut self, frame: &PythonFrame, desk: &mut Desk) -> Option<Frame> {
        let layout = super::layout()?;
        // SAFETY: the frame is on this thread's chain and keeps its code object alive.
        let (kind, first_traceable) = unsafe {
            (
                read::<u64>(frame.code + layout::OBJECT_TYPE),
                read::<i32>(frame.code + layout.code.first_traceable),
            )
        };
        if kind != CODE_TYPE.load(Ordering::Relaxed) {
            // What an interpreter leaves behind says nothing of the layout.
            if !python_is_finalising() {
                refuse();
            }
            return None;
        }
        // In bytes. The instruction before the first is how a frame begins: negative then.
        let offset = frame
            .instruction
            .wrapping_sub(frame.code + layout.code.instructions) as i64;
        if frame.owner != layout::OWNED_BY_GENERATOR && offset < i64::from(first_traceable) * 2 {
            return None;
        }
        let code = id(layout, frame.code, desk)?;
        let entry = self
            .entries
            .get_mut(mix(frame.instruction) as usize % 1024)?;
        if (entry.instruction, entry.code) != (frame.instruction, code.0) {
            *entry = Line {
                instruction: frame.instruction,
                code: code.0,
                line: line(layout, frame.code, offset),
            };
        }
        Some(Frame::Python {
            code,
            line: entry.line,
        })
    }
}

/// The line of the instruction at a byte offset, 0 where the compiler gave none.
fn line(layout: &Layout, code: u64, offset: i64) -> u32 {
    // SAFETY: a living code object: `co_linetable` is a bytes object of `ob_size` bytes.
    let (first_line, table) = unsafe {
        let table: u64 = read(code + layout.code.line_table);
        let length: u64 = read(table + layout::OBJECT_SIZE);
        let data = (table + layout::BYTES_DATA) as *const u8;
        (
            read::<i32>(code + layout.code.first_line),
            core::slice::from_raw_parts(data, length as usize),
        )
    };
    let line = if offset < 0 {
        Some(i64::from(first_line))
    } else {
        line_in(table, i64::from(first_line), offset)
    };
    line.and_then(|line| u32::try_from(line).ok()).unwrap_or(0)
}

/// Decodes a location table of CPython 3.11 and later (`Objects/locations.md`): entries of a first byte with its highest bit
/// set (code in bits 3 to 6, length in code units less one in bits 0 to 2) and further bytes without it.
fn line_in(table: &[u8], first_line: i64, offset: i64) -> Option<i64> {
    let mut line = first_line;
    let mut end = 0i64;
    let mut rest = table;
    while let Some((first, tail)) = rest.split_first() {
        let length = tail
            .iter()
            .position(|byte| byte & 0x80 != 0)
            .unwrap_or(tail.len());
        let (body, next) = tail.split_at(length);
        rest = next;
        let mut has_line = true;
        match first >> 3 & 15 {
            15 => has_line = false,
            13 | 14 => line += signed(body),
            // One-line forms: the code says how many lines further.
            code @ 10..=12 => line += i64::from(code) - 10,
            // Short forms: the same line.
            _ => {}
        }
        end += (i64::from(first & 7) + 1) * 2;
        if offset < end {
            return has_line.then_some(line);
        }
    }
    None
}

/// A signed number in groups of 6 bits, the least first; bit 6 says that another follows. The lowest bit is the sign.
fn signed(body: &[u8]) -> i64 {
    let mut value = 0u64;
    for (index, byte) in body.iter().take(10).enumerate() {
        value |= u64::from(byte & 63) << (6 * index);
        if byte & 64 == 0 {
            break;
        }
    }
    let magnitude = (value >> 1) as i64;
    if value & 1 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// A Python string as UTF-8, cut to the buffer at a character's border.
///
/// # Safety
/// `object` is a living string object of this layout's interpreter, or null.
unsafe fn string<'a>(layout: &Layout, object: u64, buffer: &'a mut [u8]) -> &'a str {
    if object == 0 {
        return "";
    }
    // SAFETY: the members of a string object.
    let (length, state) = unsafe {
        (
            read::<u64>(object + layout::STRING_LENGTH) as usize,
            read::<u32>(object + layout::STRING_STATE),
        )
    };
    let (kind, compact, ascii) = (state >> 2 & 7, state >> 5 & 1, state >> 6 & 1);
    if compact == 0 {
        return "";
    }
    let characters = object
        + if ascii == 1 {
            layout.ascii_characters
        } else {
            layout.other_characters
        };
    let mut written = 0;
    for index in 0..length as u64 {
        // SAFETY: a compact string holds `length` units of `kind` bytes behind its header.
        let unit = unsafe {
            match kind {
                1 => u32::from(read::<u8>(characters + index)),
                2 => u32::from(read::<u16>(characters + 2 * index)),
                4 => read::<u32>(characters + 4 * index),
                _ => break,
            }
        };
        let character = char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER);
        let Some(room) = buffer.get_mut(written..written + character.len_utf8()) else {
            break;
        };
        written += character.encode_utf8(room).len();
    }
    core::str::from_utf8(buffer.get(..written).unwrap_or(&[])).unwrap_or("")
}

static ORIGINAL_DEALLOC: AtomicUsize = AtomicUsize::new(0);

/// Puts our function into `PyCode_Type.tp_dealloc`. No GIL is needed: one aligned pointer is stored, and both the old and the
/// new function are right whenever they are called.
pub(super) fn watch_deaths(code_type: u64) {
    // SAFETY: the slot of a type object that was checked by its size and name; types are writable, and the interpreter
    // reads the slot as one word.
    let slot = unsafe { &*((code_type + layout::TYPE_DEALLOC) as *const AtomicUsize) };
    ORIGINAL_DEALLOC.store(slot.load(Ordering::Relaxed), Ordering::Relaxed);
    // Release: who calls ours finds the original.
    slot.store(code_dies as *const () as usize, Ordering::Release);
}

unsafe extern "C" fn code_dies(code: *mut c_void) {
    if let Some(slot) = CODES.slot(code as u64, false)
        && slot.id.load(Ordering::Relaxed) != 0
    {
        // Both come before the memory is freed, and so before the allocator's lock (the GIL) hands it to another thread.
        slot.id.store(0, Ordering::Release);
        intern::next_era();
    }
    let original = ORIGINAL_DEALLOC.load(Ordering::Acquire);
    // SAFETY: what stood in the slot before us: a `destructor`, called as the interpreter called us.
    unsafe { core::mem::transmute::<usize, unsafe extern "C" fn(*mut c_void)>(original)(code) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_table_gives_lines() {
        // One line further over 2 units, the same line over 1, no line over 1, back by 3 over 1.
        let table = [
            0x80 | 11 << 3 | 1,
            0,
            0,
            0x80,
            0,
            0x80 | 15 << 3,
            0x80 | 13 << 3,
            7,
        ];
        let lines: Vec<_> = [0, 2, 4, 6, 8, 10]
            .map(|offset| line_in(&table, 10, offset))
            .to_vec();
        assert_eq!(lines, [Some(11), Some(11), Some(11), None, Some(8), None]);
    }

    #[test]
    fn signed_numbers_span_groups() {
        assert_eq!(signed(&[6]), 3);
        assert_eq!(signed(&[7]), -3);
        // 1000 << 1 = 2000 = 0b11111_010000
        assert_eq!(signed(&[0x40 | 0b01_0000, 0b1_1111]), 1000);
        assert_eq!(signed(&[]), 0);
    }
}
