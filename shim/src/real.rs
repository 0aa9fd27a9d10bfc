//! The real functions behind our exports: the loader's, and the driver's.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use libloading::os::unix::Library;
use once_cell::race::OnceNonZeroUsize;

use crate::elf;
use crate::intercept::table;

pub(crate) type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
pub(crate) type Dlvsym =
    unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
pub(crate) type Dlclose = unsafe extern "C" fn(*mut c_void) -> i32;

/// The real `dlsym`; null until it was asked for. The naked stub reads it. Release/acquire is not needed: the pointer leads
/// to code that was mapped before the process's first instruction.
pub(crate) static DLSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The real `dlvsym`, likewise.
pub(crate) static DLVSYM: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The library that holds the loader's functions: libc since glibc 2.34, libdl before.
const LOADERS: [&CStr; 2] = [c"libc.so.6", c"libdl.so.2"];

fn loader_function(name: &CStr) -> Option<NonNull<c_void>> {
    LOADERS
        .iter()
        .find_map(|library| elf::symbol_in(library, name))
}

/// Finds the real `dlsym`: the next one behind ours in the order of the loader, so that another preloaded tool keeps its
/// place, else libc's. Gives the address, and null only where there is no libc.
pub(crate) extern "C" fn resolve_dlsym() -> *mut c_void {
    let next = |dlvsym: Dlvsym| {
        // The versions under which dlsym was ever exported: x86-64 before 2.34, aarch64, and both since.
        [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"]
            .into_iter()
            .find_map(|version| {
                // SAFETY: the real dlvsym, called with C strings; RTLD_NEXT is judged by our own return address.
                NonNull::new(unsafe {
                    dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr())
                })
            })
    };
    let found = dlvsym()
        .and_then(next)
        .or_else(|| loader_function(c"dlsym"));
    let address = found.map_or(null_mut(), NonNull::as_ptr);
    DLSYM.store(address, Ordering::Relaxed);
    address
}

/// Finds the real `dlvsym`.
pub(crate) extern "C" fn resolve_dlvsym() -> *mut c_void {
    let address = loader_function(c"dlvsym").map_or(null_mut(), NonNull::as_ptr);
    DLVSYM.store(address, Ordering::Relaxed);
    address
}

/// The real `dlsym`.
pub(crate) fn dlsym() -> Option<Dlsym> {
    let known = DLSYM.load(Ordering::Relaxed);
    let address = if known.is_null() {
        resolve_dlsym()
    } else {
        known
    };
    // SAFETY: the address of a function of this type, found by its name.
    NonNull::new(address)
        .map(|address| unsafe { core::mem::transmute::<*mut c_void, Dlsym>(address.as_ptr()) })
}

fn dlvsym() -> Option<Dlvsym> {
    let known = DLVSYM.load(Ordering::Relaxed);
    let address = if known.is_null() {
        resolve_dlvsym()
    } else {
        known
    };
    // SAFETY: the address of a function of this type, found by its name.
    NonNull::new(address)
        .map(|address| unsafe { core::mem::transmute::<*mut c_void, Dlvsym>(address.as_ptr()) })
}

/// The address of a function, looked up at its first use and then kept. Whoever comes first wins and nobody waits, so it may
/// be used in a hook.
pub(crate) struct FoundOnce(OnceNonZeroUsize);

impl FoundOnce {
    /// Not looked up yet.
    pub(crate) const fn new() -> Self {
        Self(OnceNonZeroUsize::new())
    }

    /// The address; null while `find` finds nothing.
    #[inline(always)]
    pub(crate) fn get(&self, find: impl FnOnce() -> Option<NonNull<c_void>>) -> *mut c_void {
        let found = self
            .0
            .get_or_try_init(|| find().map(NonNull::addr).ok_or(()));
        found.map_or(null_mut(), |address| address.get() as *mut c_void)
    }
}

/// The real `dlclose`.
pub(crate) fn dlclose() -> Option<Dlclose> {
    static KNOWN: FoundOnce = FoundOnce::new();
    let find = || {
        // SAFETY: the real dlsym; RTLD_NEXT is judged by our own return address: what is behind us.
        let next = dlsym()
            .and_then(|dlsym| NonNull::new(unsafe { dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) }));
        next.or_else(|| loader_function(c"dlclose"))
    };
    let address = NonNull::new(KNOWN.get(find))?;
    // SAFETY: the address of a function of this type, found by its name.
    Some(unsafe { core::mem::transmute::<*mut c_void, Dlclose>(address.as_ptr()) })
}

/// Keeps the driver, once it is known, mapped for the rest of the process, whatever the program closes: we hold addresses of
/// its functions. Called where the loader's lock is taken anyway: before a `dlclose` of the program's.
pub(crate) fn pin_driver() {
    /// Relaxed: at worst it is pinned twice.
    static PINNED: AtomicBool = AtomicBool::new(false);
    if DRIVER_END.load(Ordering::Acquire) == 0 || PINNED.swap(true, Ordering::Relaxed) {
        return;
    }
    pin(DRIVER_FILE);
}

/// Keeps Python's interpreter mapped, whose functions we ask, if it was met. To be called as [`pin_driver`].
#[cold]
pub(crate) fn pin_python() {
    /// Relaxed: at worst it is pinned twice.
    static PINNED: AtomicBool = AtomicBool::new(false);
    let Some(file) = crate::stack::python_file() else {
        return;
    };
    if !PINNED.swap(true, Ordering::Relaxed)
        && let Ok(file) = file.to_str()
    {
        pin(file);
    }
}

/// Takes a reference to a library that is mapped already, for ever.
fn pin(file: &str) {
    let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY;
    // SAFETY: opens nothing that is not mapped already, so no constructor runs.
    if let Ok(library) = unsafe { Library::open(Some(file), flags) } {
        core::mem::forget(library);
    }
}

/// The address of a symbol in whichever mapped object defines it first, in load order. Takes no lock of the loader that a
/// library's constructor could hold.
pub(crate) fn symbol(name: &CStr) -> Option<NonNull<c_void>> {
    elf::symbol_anywhere(name)
}

/// The driver's name, which programs ask for. Its file may have any name and lie anywhere.
pub(crate) const DRIVER: &CStr = c"libcuda.so.1";
const DRIVER_FILE: &str = "libcuda.so.1";

/// The driver's address range; the end is written last (release) and read first (acquire).
static DRIVER_START: AtomicUsize = AtomicUsize::new(0);
static DRIVER_END: AtomicUsize = AtomicUsize::new(0);

/// Whether an address lies in the driver, as far as the driver is known.
pub(crate) fn in_driver(address: usize) -> bool {
    let end = DRIVER_END.load(Ordering::Acquire);
    address < end && address >= DRIVER_START.load(Ordering::Relaxed)
}

/// Makes the driver known: the object named libcuda.so.1 that holds `address`, or for 0 any. Fills the real address of each
/// row of the hook table. Gives whether the driver is known now. Safe to call at any time and from several threads: all
/// come to the same values.
#[cold]
pub(crate) fn find_driver(address: usize) -> bool {
    if DRIVER_END.load(Ordering::Acquire) != 0 {
        return address == 0 || in_driver(address);
    }
    elf::find_object(|object| {
        if (address != 0 && !object.contains(address)) || !object.is_named(DRIVER) {
            return None;
        }
        for row in table::rows() {
            if let Some(real) = object.symbol(row.name()) {
                row.set_real(real);
            }
        }
        let (start, end) = object.range();
        DRIVER_START.store(start, Ordering::Relaxed);
        DRIVER_END.store(end, Ordering::Release);
        Some(())
    })
    .is_some()
}
