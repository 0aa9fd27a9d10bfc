//! Where CPython keeps what we read, version by version. All offsets are in bytes, from the headers of that version, and were
//! checked by running it.

mod v3_11;
mod v3_12;
mod v3_13;

/// The offsets of one version of CPython, as built for 64-bit machines without `Py_TRACE_REFS` and with a GIL.
#[derive(Debug)]
pub(crate) struct Layout {
    /// 3.
    pub(crate) major: u8,
    /// 11 for 3.11.
    pub(crate) minor: u8,
    /// Where a thread's innermost frame is.
    pub(crate) top: Top,
    /// `PyInterpreterState.gc.collecting`, an int.
    pub(crate) interpreter_collecting: u64,
    /// `_PyInterpreterFrame.f_code`, since 3.13 `f_executable`.
    pub(crate) frame_code: u64,
    /// `_PyInterpreterFrame.previous`.
    pub(crate) frame_previous: u64,
    /// `_PyInterpreterFrame.prev_instr`, since 3.13 `instr_ptr`: of a frame that calls, both are the call.
    pub(crate) frame_instruction: u64,
    /// `_PyInterpreterFrame.owner`.
    pub(crate) frame_owner: u64,
    /// How to tell where the interpreter's C function was entered.
    pub(crate) entries: Entries,
    /// The members of `PyCodeObject`.
    pub(crate) code: Code,
    /// The offset of the characters of a compact ASCII string (`sizeof(PyASCIIObject)`).
    pub(crate) ascii_characters: u64,
    /// The offset of the characters of any other compact string (`sizeof(PyCompactUnicodeObject)`).
    pub(crate) other_characters: u64,
    /// Words of `_Py_DebugOffsets`, by index, and what they must hold.
    pub(crate) account: &'static [(u64, u64)],
}

/// Where a thread's innermost frame is.
#[derive(Debug)]
pub(crate) enum Top {
    /// In the innermost `_PyCFrame`.
    CFrame {
        /// `PyThreadState.cframe`.
        of_thread: u64,
        /// `_PyCFrame.current_frame`.
        frame: u64,
    },
    /// In the thread state.
    Frame {
        /// `PyThreadState.current_frame`.
        of_thread: u64,
    },
}

/// What marks an entry into the interpreter's C function, at an address inside that function's stack frame.
#[derive(Debug)]
pub(crate) enum Entries {
    /// Each entry has a `_PyCFrame` on the C stack, and its outermost Python frame has `is_entry` set.
    CFrames {
        /// `_PyCFrame.previous`.
        previous: u64,
        /// `_PyInterpreterFrame.is_entry`.
        is_entry: u64,
    },
    /// Each entry puts a frame on the C stack into the chain, with this owner.
    Frames {
        /// `FRAME_OWNED_BY_CSTACK`.
        owner: u8,
    },
}

/// The members of `PyCodeObject`.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) first_line: u64,
    pub(crate) file: u64,
    pub(crate) qualified_name: u64,
    pub(crate) line_table: u64,
    pub(crate) first_traceable: u64,
    /// `co_code_adaptive`: the instructions, which end the object. `tp_basicsize` of the type is the same number.
    pub(crate) instructions: u64,
}

/// `PyThreadState.interp`.
pub(crate) const THREAD_INTERPRETER: u64 = 16;
/// `PyObject.ob_type`.
pub(crate) const OBJECT_TYPE: u64 = 8;
/// `PyVarObject.ob_size`.
pub(crate) const OBJECT_SIZE: u64 = 16;
/// `PyBytesObject.ob_sval`.
pub(crate) const BYTES_DATA: u64 = 32;
/// `PyASCIIObject.length`.
pub(crate) const STRING_LENGTH: u64 = 16;
/// `PyASCIIObject.state`: interned (2 bits), kind (3), compact (1), ascii (1).
pub(crate) const STRING_STATE: u64 = 32;
/// `PyTypeObject.tp_name`.
pub(crate) const TYPE_NAME: u64 = 24;
/// `PyTypeObject.tp_basicsize`.
pub(crate) const TYPE_BASIC_SIZE: u64 = 32;
/// `PyTypeObject.tp_dealloc`.
pub(crate) const TYPE_DEALLOC: u64 = 48;
/// `FRAME_OWNED_BY_GENERATOR`.
pub(crate) const OWNED_BY_GENERATOR: u8 = 1;

/// The layout of a version, if it is known.
pub(crate) fn of(major: u8, minor: u8) -> Option<&'static Layout> {
    let known = [&v3_11::LAYOUT, &v3_12::LAYOUT, &v3_13::LAYOUT];
    known
        .into_iter()
        .find(|layout| (layout.major, layout.minor) == (major, minor))
}
