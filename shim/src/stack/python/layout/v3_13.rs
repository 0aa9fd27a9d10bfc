//! CPython 3.13: `Include/cpython/{pystate,code}.h`, `Include/internal/pycore_{frame,interp,gc}.h`.

use super::{Code, Entries, Layout, Top};

pub(super) static LAYOUT: Layout = Layout {
    major: 3,
    minor: 13,
    top: Top::Frame { of_thread: 72 },
    interpreter_collecting: 7600,
    frame_code: 0,
    frame_previous: 8,
    frame_instruction: 56,
    frame_owner: 70,
    entries: Entries::Frames { owner: 3 },
    code: Code {
        first_line: 68,
        file: 112,
        qualified_name: 128,
        line_table: 136,
        first_traceable: 184,
        instructions: 200,
    },
    ascii_characters: 40,
    other_characters: 56,
    // Free-threaded or not; the interpreter's collector, whose flag is at 200; the thread's current frame; the frame's previous, code, instruction and owner; the code's file,
    // qualified name, line table, first line and instructions.
    account: &[
        (2, 0),
        (10, 7400),
        (23, 72),
        (29, 8),
        (30, 0),
        (31, 56),
        (33, 70),
        (35, 112),
        (37, 128),
        (38, 136),
        (39, 68),
        (43, 200),
    ],
};
