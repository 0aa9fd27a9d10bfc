//! The CUDA driver, found in two ways: by `dlsym`, and by `cuGetProcAddress`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;

/// A driver function without parameters, before it gets its true type.
type Address = *mut c_void;

/// Why the demo cannot go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// A library or a function is not there.
    Missing(String),
    /// A function of the driver failed.
    Driver {
        /// What was done.
        function: &'static str,
        /// The driver's error number.
        code: c_int,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(what) => formatter.write_str(what),
            Self::Driver { function, code } => {
                write!(formatter, "{function} failed: the CUDA driver says {code}")?;
                if *code == 2 {
                    formatter.write_str(" (out of memory: the demo needs 400 MiB)")?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Error {}

/// The result of a driver function as a result.
pub(crate) fn check(function: &'static str, code: c_int) -> Result<(), Error> {
    if code == 0 {
        Ok(())
    } else {
        Err(Error::Driver { function, code })
    }
}

/// What the loader says of the last failure.
pub(crate) fn loader_message() -> String {
    // SAFETY: the text lives until the next call of this thread.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() {
            return "no reason is known".to_owned();
        }
        CStr::from_ptr(text).to_string_lossy().into_owned()
    }
}

/// The driver's library, open as long as the program runs.
pub(crate) struct Library(*mut c_void);

impl Library {
    /// Opens it for all: the plugin's symbols are bound to it.
    pub(crate) fn open() -> Result<Self, Error> {
        // SAFETY: the name is a zero-ended string.
        let handle =
            unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            return Err(Error::Missing(format!(
                "no CUDA driver ({}); `gpumem demo` brings a simulated one",
                loader_message()
            )));
        }
        Ok(Self(handle))
    }

    fn symbol(&self, name: &'static CStr) -> Result<Address, Error> {
        // SAFETY: the handle is open and the name zero-ended.
        let address = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        if address.is_null() {
            return Err(Error::Missing(format!(
                "the CUDA driver is too old for the demo: it has no {}",
                name.to_string_lossy()
            )));
        }
        Ok(address)
    }
}

/// Makes a struct of driver functions from rows: field, name, parameters.
macro_rules! functions {
    (
        $(#[$doc:meta])*
        $table:ident, by $finder:ty:
        $($field:ident = $name:literal ($($type:ty),* $(,)?);)*
    ) => {
        $(#[$doc])*
        pub(crate) struct $table {
            $(pub(crate) $field: unsafe extern "C" fn($($type),*) -> c_int,)*
        }

        impl $table {
            fn from(finder: &$finder) -> Result<Self, Error> {
                Ok(Self {
                    $($field: {
                        let address = finder.symbol($name)?;
                        // SAFETY: the driver's function of that name has this
                        // signature.
                        unsafe {
                            std::mem::transmute::<
                                Address,
                                unsafe extern "C" fn($($type),*) -> c_int,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    /// What the model uses, found by `dlsym`.
    ByName, by Library:
    init = c"cuInit" (c_uint);
    device_get = c"cuDeviceGet" (*mut c_int, c_int);
    device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
    retain_context = c"cuDevicePrimaryCtxRetain" (*mut u64, c_int);
    set_context = c"cuCtxSetCurrent" (u64);
    allocate = c"cuMemAlloc_v2" (*mut u64, usize);
    free = c"cuMemFree_v2" (u64);
    fill = c"cuMemsetD8_v2" (u64, u8, usize);
}

functions! {
    /// What the cache and the arena use, found by `cuGetProcAddress`.
    ByVersion, by Versions:
    allocate = c"cuMemAlloc" (*mut u64, usize);
    allocate_async = c"cuMemAllocAsync" (*mut u64, usize, u64);
    free_async = c"cuMemFreeAsync" (u64, u64);
    synchronise = c"cuStreamSynchronize" (u64);
    create = c"cuMemCreate" (*mut u64, usize, *const Properties, u64);
    release = c"cuMemRelease" (u64);
    reserve = c"cuMemAddressReserve" (*mut u64, usize, usize, u64, u64);
    free_range = c"cuMemAddressFree" (u64, usize);
    map = c"cuMemMap" (u64, usize, usize, u64, u64);
    unmap = c"cuMemUnmap" (u64, usize);
    set_access = c"cuMemSetAccess" (u64, usize, *const Access, usize);
    granularity = c"cuMemGetAllocationGranularity" (*mut usize, *const Properties, c_uint);
}

/// `CUmemLocation` of the first device.
#[repr(C)]
pub(crate) struct Location {
    kind: c_int,
    device: c_int,
}

/// `CUmemAllocationProp` of memory on the first device.
#[repr(C)]
pub(crate) struct Properties {
    kind: c_uint,
    handle_types: c_uint,
    location: Location,
    metadata: u64,
    flags: u64,
}

/// `CUmemAccessDesc`: the first device may read and write.
#[repr(C)]
pub(crate) struct Access {
    location: Location,
    flags: c_uint,
}

const FIRST_DEVICE: Location = Location { kind: 1, device: 0 };

pub(crate) const PROPERTIES: Properties = Properties {
    kind: 1,
    handle_types: 0,
    location: FIRST_DEVICE,
    metadata: 0,
    flags: 0,
};

pub(crate) const ACCESS: Access = Access {
    location: FIRST_DEVICE,
    flags: 3,
};

impl ByName {
    /// Finds all functions.
    pub(crate) fn find(library: &Library) -> Result<Self, Error> {
        Self::from(library)
    }

    /// Starts the driver, makes the first device's context current, and
    /// answers the device's name.
    pub(crate) fn start(&self) -> Result<String, Error> {
        let (mut device, mut context) = (0, 0);
        let mut name = [0 as c_char; 64];
        // SAFETY: all answers go to local variables of the right size.
        unsafe {
            check("cuInit", (self.init)(0))?;
            check("cuDeviceGet", (self.device_get)(&mut device, 0))?;
            check(
                "cuDeviceGetName",
                (self.device_name)(name.as_mut_ptr(), 64, device),
            )?;
            check(
                "cuDevicePrimaryCtxRetain",
                (self.retain_context)(&mut context, device),
            )?;
            check("cuCtxSetCurrent", (self.set_context)(context))?;
            Ok(CStr::from_ptr(name.as_ptr()).to_string_lossy().into_owned())
        }
    }
}

impl ByVersion {
    /// Finds all functions.
    pub(crate) fn find(library: &Library) -> Result<Self, Error> {
        Self::from(&Versions::find(library)?)
    }
}

/// `cuGetProcAddress`, second version.
type GetProcAddress =
    unsafe extern "C" fn(*const c_char, *mut Address, c_int, u64, *mut c_int) -> c_int;

/// Look-ups by name and version.
struct Versions(GetProcAddress);

impl Versions {
    /// The version of the interface that the demo is written for.
    const VERSION: c_int = 12_000;

    /// As a CUDA runtime does: the exported function is asked for itself, and
    /// its answer is used from then on.
    fn find(library: &Library) -> Result<Self, Error> {
        let exported = library.symbol(c"cuGetProcAddress_v2")?;
        // SAFETY: the driver's function of that name has this signature.
        let exported = Self(unsafe { std::mem::transmute::<Address, GetProcAddress>(exported) });
        let own = exported.symbol(c"cuGetProcAddress")?;
        // SAFETY: from version 12000 on it has the same signature.
        Ok(Self(unsafe {
            std::mem::transmute::<Address, GetProcAddress>(own)
        }))
    }

    fn symbol(&self, name: &'static CStr) -> Result<Address, Error> {
        let mut address = std::ptr::null_mut();
        // SAFETY: the name is zero-ended, the answer goes to a local variable,
        // and a NULL status is legal.
        let code = unsafe {
            (self.0)(
                name.as_ptr(),
                &mut address,
                Self::VERSION,
                0,
                std::ptr::null_mut(),
            )
        };
        if code != 0 || address.is_null() {
            return Err(Error::Missing(format!(
                "the CUDA driver is too old for the demo: it has no {} of version {}",
                name.to_string_lossy(),
                Self::VERSION
            )));
        }
        Ok(address)
    }
}
