//! What the environment asks for. Read once, at the first hook that could record; one row a variable.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Mode {
    /// Nothing: every hook passes through.
    Off = 1,
    /// Events without stacks.
    Ledger = 2,
    /// Events with stacks.
    Full = 3,
}

/// `GPUMEM_MODE`: `off`, `ledger` or `full` (the default).
const MODE: &CStr = c"GPUMEM_MODE";
/// `GPUMEM_FULL_NATIVE`: walk native frames outside of the innermost interpreter frame too.
const FULL_NATIVE: &CStr = c"GPUMEM_FULL_NATIVE";
/// `GPUMEM_SPOOL_LIMIT`: bytes of a spool file, at most.
pub(crate) const SPOOL_LIMIT: &CStr = c"GPUMEM_SPOOL_LIMIT";

/// 0 until the environment was read. Relaxed is enough: whoever reads 0 reads the environment itself and comes to the same.
static CURRENT_MODE: AtomicU8 = AtomicU8::new(0);
static FULL_NATIVE_SET: AtomicU8 = AtomicU8::new(0);

/// The value of a variable.
pub(crate) fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: the name is a C string. The value may only be changed under us by a program that calls setenv while another
    // thread of it reads the environment, which no program may do.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a non-null result of getenv is a C string in the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) }.to_bytes())
}

/// How much is recorded.
#[inline(always)]
pub(crate) fn mode() -> Mode {
    match CURRENT_MODE.load(Relaxed) {
        1 => Mode::Off,
        2 => Mode::Ledger,
        3 => Mode::Full,
        _ => read(),
    }
}

/// Whether stacks hold every native frame.
#[inline(always)]
pub(crate) fn full_native() -> bool {
    FULL_NATIVE_SET.load(Relaxed) == 1
}

#[cold]
fn read() -> Mode {
    let mode = match variable(MODE) {
        Some(b"off") => Mode::Off,
        Some(b"ledger") => Mode::Ledger,
        _ => Mode::Full,
    };
    let full = variable(FULL_NATIVE).is_some_and(|value| !matches!(value, b"" | b"0" | b"off"));
    FULL_NATIVE_SET.store(u8::from(full), Relaxed);
    CURRENT_MODE.store(mode as u8, Relaxed);
    mode
}
