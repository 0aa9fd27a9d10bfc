//! What programs register before `main`: containers of code, kernels and
//! variables, by the address of the host's stand-in.
//!
//! libtorch registers tens of thousands of kernels, so nothing is loaded before
//! its first use.

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::driver::{Driver, Handle};
use crate::error::{INVALID_DEVICE_FUNCTION, INVALID_SYMBOL, Outcome};
use crate::export::exported;

/// A registered kernel or variable.
struct Entry {
    container: usize,
    name: &'static CStr,
    /// Of a variable.
    size_bytes: Option<usize>,
    kernel: Option<Handle>,
}

/// A registered container, and the library that the driver made of it.
struct Container {
    image: usize,
    library: Option<Handle>,
}

#[derive(Default)]
struct Registry {
    containers: Vec<Container>,
    entries: HashMap<usize, Entry>,
}

fn registry() -> MutexGuard<'static, Registry> {
    static REGISTRY: std::sync::LazyLock<Mutex<Registry>> =
        std::sync::LazyLock::new(Mutex::default);
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    fn library(&mut self, driver: &Driver, container: usize) -> Outcome<Handle> {
        let container = self
            .containers
            .get_mut(container)
            .ok_or(INVALID_DEVICE_FUNCTION)?;
        if let Some(library) = container.library {
            return Ok(library);
        }
        let mut library = 0;
        let image = container.image as *const c_void;
        // SAFETY: the answer has room, and the image is the program's own.
        unsafe { driver.cuLibraryLoadData(&mut library, image, 0, 0, 0, 0, 0, 0)? };
        container.library = Some(library);
        Ok(library)
    }
}

/// The kernel that a stand-in of the host was registered for.
pub(crate) fn kernel(driver: &Driver, stand_in: *const c_void) -> Outcome<Handle> {
    let mut registry = registry();
    let entry = registry.entries.get(&(stand_in as usize));
    let entry = entry
        .filter(|entry| entry.size_bytes.is_none())
        .ok_or(INVALID_DEVICE_FUNCTION)?;
    if let Some(kernel) = entry.kernel {
        return Ok(kernel);
    }
    let (container, name) = (entry.container, entry.name);
    let library = registry.library(driver, container)?;
    let mut kernel = 0;
    // SAFETY: the answer has room, and the name lives.
    unsafe { driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr())? };
    if let Some(entry) = registry.entries.get_mut(&(stand_in as usize)) {
        entry.kernel = Some(kernel);
    }
    Ok(kernel)
}

/// Address and size of the variable that a stand-in was registered for.
pub(crate) fn variable(driver: &Driver, stand_in: *const c_void) -> Outcome<(Handle, usize)> {
    let mut registry = registry();
    let entry = registry
        .entries
        .get(&(stand_in as usize))
        .ok_or(INVALID_SYMBOL)?;
    let size_bytes = entry.size_bytes.ok_or(INVALID_SYMBOL)?;
    let (container, name) = (entry.container, entry.name);
    let library = registry.library(driver, container)?;
    let mut address = 0;
    // SAFETY: the answer has room, the other one is not wanted, and the name lives.
    unsafe {
        driver.cuLibraryGetGlobal(&mut address, std::ptr::null_mut(), library, name.as_ptr())?;
    }
    Ok((address, size_bytes))
}

/// Adds an entry, unless it has no name.
unsafe fn register(
    container: usize,
    stand_in: usize,
    name: *const c_char,
    size_bytes: Option<usize>,
) {
    if name.is_null() {
        return;
    }
    // SAFETY: registered names are constants of a loaded library.
    let name = unsafe { CStr::from_ptr::<'static>(name) };
    let entry = Entry {
        // Handles of containers count from one.
        container: container.wrapping_sub(1),
        name,
        size_bytes,
        kernel: None,
    };
    registry().entries.insert(stand_in, entry);
}

exported! {
    /// Registers a container; its handle.
    fn __cudaRegisterFatBinary(image: usize) -> usize {
        let mut registry = registry();
        registry.containers.push(Container {
            image,
            library: None,
        });
        registry.containers.len()
    }

    /// All entries of a container are registered.
    fn __cudaRegisterFatBinaryEnd(_container: usize) {}

    /// A library is closed: its entries cannot be asked for any more.
    fn __cudaUnregisterFatBinary(container: usize) {
        let index = container.wrapping_sub(1);
        registry()
            .entries
            .retain(|_, entry| entry.container != index);
    }

    /// Registers a kernel; of the many parameters the name counts.
    fn __cudaRegisterFunction(
        container: usize,
        stand_in: usize,
        _device_stand_in: usize,
        name: *const c_char,
    ) {
        // SAFETY: the caller is code of the compiler, whose names are constants.
        unsafe { register(container, stand_in, name, None) };
    }

    /// Registers a variable.
    fn __cudaRegisterVar(
        container: usize,
        stand_in: usize,
        _device_stand_in: usize,
        name: *const c_char,
        _external: i32,
        size_bytes: usize,
    ) {
        // SAFETY: as above.
        unsafe { register(container, stand_in, name, Some(size_bytes)) };
    }

    /// Managed variables are not simulated: nothing asks for them by address.
    fn __cudaRegisterManagedVar(_container: usize) {}

    /// A container is ready: it always is.
    fn __cudaInitModule(_container: usize) -> u8 {
        1
    }
}
