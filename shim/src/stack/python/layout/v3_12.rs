//! CPython 3.12: `Include/cpython/{pystate,code}.h`, `Include/internal/pycore_{frame,interp,gc}.h`.

use super::{Code, Entries, Layout, Top};

pub(super) static LAYOUT: Layout = Layout {
    major: 3,
    minor: 12,
    top: Top::CFrame {
        of_thread: 56,
        frame: 0,
    },
    interpreter_collecting: 312,
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
        first_traceable: 176,
        instructions: 192,
    },
    ascii_characters: 40,
    other_characters: 56,
    account: &[],
};
