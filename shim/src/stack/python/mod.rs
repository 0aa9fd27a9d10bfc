//! The Python part of this thread's stack, read raw and without the GIL.
//!
//! A thread that is inside one of our hooks is not executing Python: nobody changes its chain of frames, and each frame keeps
//! its code object alive. So the chain can be read as memory, whether or not the thread holds the GIL. The one exception is the
//! thread's state, which the interpreter's end frees under its thread ([`walk::StateMemory`]). [`consider`] finds the
//! interpreter, [`walk`] reads the chain; [`code`] turns code objects into numbers and instructions into lines; [`layout`]
//! holds what differs between versions. Of a thread that runs a sub-interpreter, 3.11 gives the main interpreter's frames, as its
//! own answer for "this thread" does; later versions give those of the sub-interpreter.

mod code;
mod collecting;
mod finalising;
pub(crate) mod layout;
mod walk;

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use gpumem_wire::define::PythonStatus;
use layout::Layout;

use super::native::elf;
use super::native::object::{self, Object};

pub(crate) use code::LineCache;
pub(crate) use collecting::python_is_collecting;
pub(crate) use finalising::python_is_finalising;
pub(crate) use walk::{Item, PythonFrame, PythonStack};

/// `PyThreadState *PyGILState_GetThisThreadState(void)`: in every version, and what tells an interpreter from other objects.
const GETTER: &CStr = c"PyGILState_GetThisThreadState";

const ABSENT: u8 = 0;
const BEING_FOUND: u8 = 1;
const SUPPORTED: u8 = 2;
const UNSUPPORTED: u8 = 3;
const MISMATCH: u8 = 4;

static STATE: AtomicU8 = AtomicU8::new(ABSENT);
static MAJOR: AtomicU8 = AtomicU8::new(0);
static MINOR: AtomicU8 = AtomicU8::new(0);

/// Null until an interpreter with a known layout was found. Stored last (release), loaded first (acquire): whoever sees it
/// sees the others.
static LAYOUT: AtomicPtr<Layout> = AtomicPtr::new(core::ptr::null_mut());
static THREAD_STATE_GETTER: AtomicUsize = AtomicUsize::new(0);
/// 0: this interpreter has no such function.
static GIL_HOLDER_GETTER: AtomicUsize = AtomicUsize::new(0);
/// The loader's name of the interpreter's object.
static FILE: AtomicPtr<core::ffi::c_char> = AtomicPtr::new(core::ptr::null_mut());
static CODE_TYPE: AtomicU64 = AtomicU64::new(0);

/// Whether Python frames can be read.
pub(crate) fn python_status() -> PythonStatus {
    let (major, minor) = (MAJOR.load(Ordering::Relaxed), MINOR.load(Ordering::Relaxed));
    // Acquire: the version was stored before the state.
    match STATE.load(Ordering::Acquire) {
        SUPPORTED => PythonStatus::Supported { major, minor },
        UNSUPPORTED => PythonStatus::Unsupported { major, minor },
        MISMATCH => PythonStatus::Mismatch { major, minor },
        _ => PythonStatus::Absent,
    }
}

/// The file of the interpreter whose functions are asked. `None`: there is none, or it is the program itself, which nobody closes.
pub(crate) fn python_file() -> Option<&'static CStr> {
    layout()?;
    let name = FILE.load(Ordering::Relaxed);
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's own string, which lives as long as the interpreter is mapped.
    let name = unsafe { CStr::from_ptr(name) };
    (!name.is_empty()).then_some(name)
}

/// Whether an interpreter was looked at, whatever came of it.
#[inline(always)]
pub(crate) fn is_known() -> bool {
    STATE.load(Ordering::Relaxed) > BEING_FOUND
}

#[inline(always)]
fn layout() -> Option<&'static Layout> {
    // SAFETY: null or one of the statics in `layout`.
    unsafe { LAYOUT.load(Ordering::Acquire).as_ref() }
}

/// Looks whether `object`, just met on a native stack for the first time, is the interpreter. The first one counts.
pub(crate) fn consider(object: &Object) {
    if STATE.load(Ordering::Relaxed) != ABSENT {
        return;
    }
    let Some(getter) = elf::symbol(object, GETTER) else {
        return;
    };
    // The winner alone goes on; others see no Python until it is done.
    if STATE
        .compare_exchange(ABSENT, BEING_FOUND, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return;
    }
    let (major, minor) = version(object);
    MAJOR.store(major, Ordering::Relaxed);
    MINOR.store(minor, Ordering::Relaxed);
    let state = match layout::of(major, minor) {
        None => UNSUPPORTED,
        Some(layout) => {
            match checked_code_type(object, layout).filter(|_| agrees(object, layout)) {
                None => MISMATCH,
                Some(code_type) => {
                    CODE_TYPE.store(code_type, Ordering::Relaxed);
                    FILE.store(object.name.cast_mut(), Ordering::Relaxed);
                    THREAD_STATE_GETTER.store(getter as usize, Ordering::Relaxed);
                    // Both were renamed in 3.13.
                    let either = |old, new| {
                        elf::symbol(object, new)
                            .or_else(|| elf::symbol(object, old))
                            .unwrap_or(0)
                    };
                    let holder = either(
                        c"_PyThreadState_UncheckedGet",
                        c"PyThreadState_GetUnchecked",
                    );
                    GIL_HOLDER_GETTER.store(holder as usize, Ordering::Relaxed);
                    finalising::set(either(c"_Py_IsFinalizing", c"Py_IsFinalizing"));
                    code::watch_deaths(code_type);
                    LAYOUT.store(core::ptr::from_ref(layout).cast_mut(), Ordering::Release);
                    SUPPORTED
                }
            }
        }
    };
    STATE.store(state, Ordering::Release);
}

/// Looks for the interpreter by name in all objects. Only where the native stack did not lead to it: a search of all objects
/// takes a lock of the loader's.
#[cold]
pub(crate) fn look_everywhere() {
    if STATE.load(Ordering::Relaxed) == ABSENT
        && let Some(getter) = crate::real::symbol(GETTER)
        && let Some(object) = object::find(getter.as_ptr() as u64)
    {
        consider(&object);
    }
}

/// What was read is not what the layout says: no Python frames from now on.
#[cold]
fn refuse() {
    LAYOUT.store(core::ptr::null_mut(), Ordering::Relaxed);
    STATE.store(MISMATCH, Ordering::Release);
}

/// (major, minor): `Py_Version` since 3.11, else the text of `Py_GetVersion()`.
fn version(object: &Object) -> (u8, u8) {
    if let Some(address) = elf::symbol(object, c"Py_Version") {
        // SAFETY: `const unsigned long Py_Version`, in the interpreter's read-only data.
        let version = unsafe { (address as *const u64).read() };
        return ((version >> 24) as u8, (version >> 16) as u8);
    }
    let Some(address) = elf::symbol(object, c"Py_GetVersion") else {
        return (0, 0);
    };
    // SAFETY: `const char *Py_GetVersion(void)` formats into a static buffer and gives it, GIL or not.
    let text = unsafe {
        let get = core::mem::transmute::<usize, extern "C" fn() -> *const core::ffi::c_char>(
            address as usize,
        );
        CStr::from_ptr(get())
    };
    let mut numbers = text
        .to_bytes()
        .split(|byte| !byte.is_ascii_digit())
        .map(|digits| {
            digits.iter().fold(0u8, |value, digit| {
                value.wrapping_mul(10).wrapping_add(digit - b'0')
            })
        });
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// The address of `PyCode_Type`, if it looks as the layout says. A build with other object headers (`Py_TRACE_REFS`) or
/// another `PyCodeObject` does not.
fn checked_code_type(object: &Object, layout: &Layout) -> Option<u64> {
    let code_type = elf::symbol(object, c"PyCode_Type")?;
    // SAFETY: `PyCode_Type` is a variable of at least 400 bytes; the offsets below lie within.
    let member = |offset: u64| unsafe { ((code_type + offset) as *const u64).read() };
    if member(layout::TYPE_BASIC_SIZE) != layout.code.instructions {
        return None;
    }
    let name = member(layout::TYPE_NAME);
    if name < object.start || name >= object.end {
        return None;
    }
    // SAFETY: a pointer into the interpreter's own data, in the place of `tp_name`.
    let name = unsafe { CStr::from_ptr(name as *const core::ffi::c_char) };
    (name == c"code").then_some(code_type)
}

/// Whether the interpreter's own account of its layout (`_Py_DebugOffsets`, at the start of `_PyRuntime` since 3.13) is ours.
/// True where there is none.
fn agrees(object: &Object, layout: &Layout) -> bool {
    let Some(runtime) = elf::symbol(object, c"_PyRuntime") else {
        return true;
    };
    // SAFETY: a variable of some 100 KiB in every version; the index is one of the account's words, below 50.
    let word = |index: u64| unsafe { ((runtime + 8 * index) as *const u64).read() };
    if word(0).to_ne_bytes() != *b"xdebugpy" {
        return true;
    }
    let mut account = layout.account.iter();
    account.all(|(index, offset)| word(*index) == *offset)
}

/// # Safety
/// `address` is a readable value of type `T` in the interpreter's memory.
#[inline(always)]
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: by the contract above. Volatile: another language owns this memory and may change it between two captures.
    unsafe { (address as *const T).read_volatile() }
}
