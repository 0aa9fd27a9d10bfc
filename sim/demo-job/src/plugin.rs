//! The data loader, a plugin whose driver symbols were bound at link time.

use std::ffi::{CString, c_int, c_void};

use crate::driver::{Error, check, loader_message};

const FILE: &str = "libgpumem_demo_plugin.so";

/// The loaded plugin.
pub(crate) struct Plugin {
    load_batch: unsafe extern "C" fn(usize) -> c_int,
}

impl Plugin {
    /// Loads it from beside this program. The driver must have been opened for
    /// all before.
    pub(crate) fn load() -> Result<Self, Error> {
        let program = std::env::current_exe()
            .map_err(|error| Error::Missing(format!("this program's place is unknown: {error}")))?;
        let path = program.with_file_name(FILE);
        let name = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| Error::Missing(format!("{} is no path", path.display())))?;
        // SAFETY: the plugin is ours and does nothing when it is loaded.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Error::Missing(format!(
                "the plugin is missing: {}",
                loader_message()
            )));
        }
        // SAFETY: the handle is open and the name zero-ended.
        let symbol = unsafe { libc::dlsym(handle, c"gpumem_demo_load_batch".as_ptr()) };
        if symbol.is_null() {
            return Err(Error::Missing(format!(
                "{} is another version's",
                path.display()
            )));
        }
        // SAFETY: the plugin's function has this signature, and the plugin
        // stays loaded.
        let load_batch = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize) -> c_int>(symbol)
        };
        Ok(Self { load_batch })
    }

    /// Loads a batch to the device and gives it back.
    pub(crate) fn load_batch(&self, bytes: usize) -> Result<(), Error> {
        // SAFETY: a context is current.
        check("load_batch", unsafe { (self.load_batch)(bytes) })
    }
}
