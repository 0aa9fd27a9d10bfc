//! CPython 3.11: `Include/cpython/{pystate,code}.h`, `Include/internal/pycore_{frame,interp,gc}.h`.

use super::{Code, Entries, Layout, Top};

pub(super) static LAYOUT: Layout = Layout {
    major: 3,
    minor: 11,
    top: Top::CFrame {
        of_thread: 56,
        frame: 8,
    },
    interpreter_collecting: 848,
    frame_code: 32,
    frame_previous: 48,
    frame_instruction: 56,
    frame_owner: 69,
    entries: Entries::CFrames {
        previous: 16,
        is_entry: 68,
    },
    code: Code {
        first_line: 72,
        file: 112,
        qualified_name: 128,
        line_table: 136,
        first_traceable: 168,
        instructions: 184,
    },
    ascii_characters: 48,
    other_characters: 72,
    account: &[],
};
