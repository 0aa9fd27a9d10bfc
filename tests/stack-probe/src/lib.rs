//! The shim's stack capture as a library of its own.
//!
//! Real interpreters and C programs load it and call [`probe_capture`] where the shim would capture; what comes back is the
//! stack as a reader of the definitions would see it, in text, one frame a line, innermost first, fields parted by tabs:
//! `P function file line`, `N path start address` (hexadecimal), `U address`, `E left_out`.

#[path = "../../../shim/src/stack/mod.rs"]
mod stack;

mod real;
mod tls;

use core::ffi::{c_char, c_int};
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Mutex;
use std::time::Instant;

use gpumem_wire::define::{self, ModuleDefinition, PythonStatus, StackDefinition};
use gpumem_wire::define::{CodeDefinition, Definition};
use gpumem_wire::{Frame, StackId};
use stack::Want;

/// What ids stand for, as far as the arena was read.
#[derive(Default)]
struct Definitions {
    reader: stack::arena::Reader,
    modules: HashMap<u32, ModuleDefinition>,
    codes: HashMap<u32, CodeDefinition>,
    stacks: HashMap<u32, StackDefinition>,
}

static DEFINITIONS: Mutex<Option<Definitions>> = Mutex::new(None);

impl Definitions {
    fn read(&mut self) {
        let mut bytes = Vec::new();
        self.reader.read(&mut bytes, usize::MAX);
        for definition in define::read_all(&bytes) {
            match definition.expect("the shim's own definition decodes") {
                Definition::Module(module) => drop(self.modules.insert(module.id.0, module)),
                Definition::Code(code) => drop(self.codes.insert(code.id.0, code)),
                Definition::Stack(stack) => drop(self.stacks.insert(stack.id.0, stack)),
                other => panic!("not the stack's to define: {other:?}"),
            }
        }
    }

    fn text(&self, id: StackId) -> String {
        let mut text = String::new();
        let Some(stack) = self.stacks.get(&id.0) else {
            return text;
        };
        for frame in &stack.frames {
            let written = match frame {
                Frame::Python { code, line } => {
                    let code = &self.codes[&code.0];
                    writeln!(text, "P\t{}\t{}\t{line}", code.function, code.file)
                }
                Frame::Native { module, address } => {
                    let module = &self.modules[&module.0];
                    writeln!(text, "N\t{}\t{:x}\t{address:x}", module.path, module.start)
                }
                Frame::Unknown { address } => writeln!(text, "U\t{address:x}"),
                Frame::Elided => writeln!(text, "E\t{}", stack.left_out),
            };
            written.expect("a string takes all");
        }
        text
    }
}

fn want(python_only: c_int) -> Want {
    if python_only != 0 {
        Want::PythonOnly
    } else {
        Want::Full
    }
}

/// Captures, and writes the stack's text into `buffer`. Gives the number of bytes that it takes, which may be more than
/// `size`.
///
/// # Safety
/// `buffer` has room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_capture(
    python_only: c_int,
    buffer: *mut c_char,
    size: usize,
) -> usize {
    let id = stack::capture(want(python_only));
    let mut guard = DEFINITIONS.lock().expect("no test panics in here");
    let definitions = guard.get_or_insert_default();
    definitions.read();
    let text = definitions.text(id);
    // SAFETY: by the contract above.
    unsafe { core::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, text.len().min(size)) };
    text.len()
}

/// Captures, and gives the id alone.
#[unsafe(no_mangle)]
pub extern "C" fn probe_id(python_only: c_int) -> u32 {
    stack::capture(want(python_only)).0
}

/// The median time of one capture of the same stack, in tenths of a nanosecond, over 200 rounds of `count`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_time(python_only: c_int, count: u32) -> u64 {
    let want = want(python_only);
    let mut rounds: Vec<u64> = (0..200)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..count {
                std::hint::black_box(stack::capture(want));
            }
            start.elapsed().as_nanos() as u64 * 10 / u64::from(count)
        })
        .collect();
    rounds.sort_unstable();
    rounds[rounds.len() / 2]
}

/// Whether `stack::python_file` knows a file.
#[unsafe(no_mangle)]
pub extern "C" fn probe_has_python_file() -> c_int {
    stack::python_file().is_some().into()
}

/// As `stack::python_is_collecting`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_is_collecting() -> c_int {
    stack::python_is_collecting().into()
}

/// As `stack::led_here_from`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_led_here_from(address: u64) -> c_int {
    stack::led_here_from(address).into()
}

/// As `stack::set_full_native`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_full_native(on: c_int) {
    stack::set_full_native(on != 0);
}

/// As `stack::bump_epoch`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_bump_epoch() {
    stack::bump_epoch();
}

/// Minor version of a supported interpreter, 0 for none, negative for one that is not supported.
#[unsafe(no_mangle)]
pub extern "C" fn probe_python() -> c_int {
    match stack::python_status() {
        PythonStatus::Absent => 0,
        PythonStatus::Supported { minor, .. } => minor.into(),
        PythonStatus::Unsupported { minor, .. } => -c_int::from(minor),
        PythonStatus::Mismatch { minor, .. } => -100 - c_int::from(minor),
    }
}

/// As `stack::python_is_finalising`.
#[unsafe(no_mangle)]
pub extern "C" fn probe_is_finalising() -> c_int {
    stack::python_is_finalising().into()
}

/// Captures, rule misses, overflows, stacks that are not a thread's own, stacks that end early.
///
/// # Safety
/// `out` has room for five numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_counters(out: *mut u64) {
    let counters = stack::counters();
    let all = [
        counters.captures,
        counters.rule_misses,
        counters.overflows,
        counters.unsupported,
        counters.lost,
    ];
    // SAFETY: by the contract above.
    unsafe { core::ptr::copy_nonoverlapping(all.as_ptr(), out, all.len()) };
}
