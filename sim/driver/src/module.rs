//! Modules, libraries, and what is found in them.
//!
//! Images are not read: every name that a program asks for is there. A kernel
//! has plausible properties; a variable is a zeroed block that takes no device
//! memory, since its size is not known.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};

use crate::abi::{In, Out, Outcome, Status};
use crate::backing;
use crate::config;
use crate::device;
use crate::entry::entry;
use crate::machine::Machine;
use crate::memory::{Allocation, Kind};

/// Size of every variable.
const VARIABLE_BYTES: u64 = 64 << 10;
/// Largest `CUfunction_attribute` that is answered.
const LAST_ATTRIBUTE: i32 = 20;
/// `CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES`.
const DYNAMIC_SHARED_BYTES: i32 = 8;
/// `CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT`.
const CARVEOUT: i32 = 9;

/// A loaded module or library.
#[derive(Default)]
struct Image {
    /// The owner of a module, at whose end it goes; libraries have none.
    context: Option<u64>,
    functions: BTreeMap<String, u64>,
    variables: BTreeMap<String, u64>,
}

/// A function or kernel: to this driver the same.
struct Function {
    image: u64,
    name: CString,
    attributes: BTreeMap<i32, i32>,
}

/// All images and functions by handle.
#[derive(Default)]
pub(crate) struct Modules {
    images: BTreeMap<u64, Image>,
    functions: BTreeMap<u64, Function>,
}

impl Modules {
    fn image(&mut self, handle: u64) -> Outcome<&mut Image> {
        self.images.get_mut(&handle).ok_or(Status::INVALID_HANDLE)
    }

    fn function(&mut self, handle: u64) -> Outcome<&mut Function> {
        self.functions
            .get_mut(&handle)
            .ok_or(Status::INVALID_HANDLE)
    }

    /// What a kernel is called, mangled as its compiler did.
    pub(crate) fn function_name(&self, handle: u64) -> Outcome<&str> {
        let function = self.functions.get(&handle).ok_or(Status::INVALID_HANDLE)?;
        function.name.to_str().map_err(|_| Status::INVALID_HANDLE)
    }

    fn attribute(&mut self, handle: u64, attribute: i32) -> Outcome<i32> {
        let function = self.function(handle)?;
        if let Some(value) = function.attributes.get(&attribute) {
            return Ok(*value);
        }
        match attribute {
            0 => Ok(1024), // threads of a block
            4 => Ok(32),   // registers
            // Versions of its code.
            5 | 6 => {
                let (major, minor) = device::capability();
                Ok(major * 10 + minor)
            }
            DYNAMIC_SHARED_BYTES => Ok(48 << 10),
            CARVEOUT => Ok(-1),
            id if (0..=LAST_ATTRIBUTE).contains(&id) => Ok(0),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    fn set_attribute(&mut self, handle: u64, attribute: i32, value: i32) -> Outcome {
        if !(DYNAMIC_SHARED_BYTES..=LAST_ATTRIBUTE).contains(&attribute) {
            return Err(Status::INVALID_VALUE);
        }
        let function = self.function(handle)?;
        function.attributes.insert(attribute, value);
        Ok(())
    }

    /// Blocks of a kernel that one multiprocessor holds: as many as its threads
    /// allow.
    fn occupancy(&mut self, handle: u64, block_threads: i32) -> Outcome<i32> {
        self.function(handle)?;
        if block_threads < 1 {
            return Err(Status::INVALID_VALUE);
        }
        let limits = config::get().device.limits();
        Ok((limits.threads as i32 / block_threads).min(limits.blocks as i32))
    }
}

impl Machine {
    fn load_module(&mut self, out: &Out<u64>, given: bool) -> Outcome {
        let context = self.contexts.current()?.handle;
        self.load(out, given, Some(context))
    }

    /// `given`: the program said what to load.
    fn load(&mut self, out: &Out<u64>, given: bool, context: Option<u64>) -> Outcome {
        out.required()?;
        if !given {
            return Err(Status::INVALID_VALUE);
        }
        let handle = self.new_handle();
        let image = Image {
            context,
            ..Image::default()
        };
        self.modules.images.insert(handle, image);
        out.set(handle)
    }

    fn unload(&mut self, handle: u64) -> Outcome {
        let image = self.modules.images.remove(&handle);
        let image = image.ok_or(Status::INVALID_HANDLE)?;
        for function in image.functions.values() {
            self.modules.functions.remove(function);
        }
        for address in image.variables.values() {
            self.drop_allocation(*address);
        }
        Ok(())
    }

    /// Unloads the modules that belong to a context.
    pub(crate) fn unload_modules_of(&mut self, context: u64) {
        let images = self.modules.images.iter();
        let owned: Vec<u64> = images
            .filter(|(_, image)| image.context == Some(context))
            .map(|(handle, _)| *handle)
            .collect();
        for handle in owned {
            // Each was there a moment ago, under the same lock.
            let _ = self.unload(handle);
        }
    }

    fn find_function(&mut self, out: &Out<u64>, image: u64, name: &In<c_char>) -> Outcome {
        out.required()?;
        let name = name.text()?;
        if let Some(handle) = self.modules.image(image)?.functions.get(name) {
            return out.set(*handle);
        }
        let handle = self.new_handle();
        let function = Function {
            image,
            name: CString::new(name).map_err(|_| Status::INVALID_VALUE)?,
            attributes: BTreeMap::new(),
        };
        self.modules.functions.insert(handle, function);
        let functions = &mut self.modules.image(image)?.functions;
        functions.insert(name.to_owned(), handle);
        out.set(handle)
    }

    fn find_variable(
        &mut self,
        address: &Out<u64>,
        size_bytes: &Out<usize>,
        image: u64,
        name: &In<c_char>,
    ) -> Outcome {
        let name = name.text()?;
        let found = self.modules.image(image)?.variables.get(name).copied();
        let place = match found {
            Some(place) => place,
            None => self.new_variable(image, name)?,
        };
        address.set_if_wanted(place);
        size_bytes.set_if_wanted(VARIABLE_BYTES as usize);
        Ok(())
    }

    fn new_variable(&mut self, image: u64, name: &str) -> Outcome<u64> {
        let device = self.contexts.current()?.device;
        let place = backing::map(VARIABLE_BYTES).ok_or(Status::OUT_OF_MEMORY)?;
        self.memory.insert(
            place,
            Allocation {
                kind: Kind::Variable,
                size_bytes: VARIABLE_BYTES,
                charged_bytes: 0,
                device: Some(device),
                context: None,
            },
        );
        let variables = &mut self.modules.image(image)?.variables;
        variables.insert(name.to_owned(), place);
        Ok(place)
    }

    fn name_of(&mut self, out: &Out<u64>, function: u64) -> Outcome {
        out.required()?;
        out.set(self.modules.function(function)?.name.as_ptr() as u64)
    }
}

entry! {
    /// Loads a module from a file, which is not read.
    fn cuModuleLoad(machine; out: Out<u64>, path: In<c_char>) {
        machine.load_module(&out, path.text().is_ok())
    }

    /// Loads a module from memory, which is not read.
    fn cuModuleLoadData(machine; out: Out<u64>, image: u64) {
        machine.load_module(&out, image != 0)
    }

    /// The same with options of the compiler, which has nothing to do.
    fn cuModuleLoadDataEx(
        machine;
        out: Out<u64>, image: u64, _count: u32, _options: u64, _values: u64
    ) {
        machine.load_module(&out, image != 0)
    }

    /// The same from a container of several images.
    fn cuModuleLoadFatBinary(machine; out: Out<u64>, image: u64) {
        machine.load_module(&out, image != 0)
    }

    /// Unloads a module.
    fn cuModuleUnload(machine; module: u64) {
        machine.unload(module)
    }

    /// Modules are loaded lazily, if at all: `CU_MODULE_LAZY_LOADING`.
    fn cuModuleGetLoadingMode(_; out: Out<i32>) {
        out.set(2)
    }

    /// A function by name.
    fn cuModuleGetFunction(machine; out: Out<u64>, module: u64, name: In<c_char>) {
        machine.find_function(&out, module, &name)
    }

    /// A variable by name; both answers are optional.
    fn cuModuleGetGlobal_v2(
        machine;
        address: Out<u64>, size_bytes: Out<usize>, module: u64, name: In<c_char>
    ) {
        machine.find_variable(&address, &size_bytes, module, &name)
    }

    /// Loads a library from memory, for all contexts.
    fn cuLibraryLoadData(
        machine;
        out: Out<u64>, code: u64,
        _jit_options: u64, _jit_values: u64, _jit_count: u32,
        _options: u64, _values: u64, _count: u32,
    ) {
        machine.load(&out, code != 0, None)
    }

    /// Loads a library from a file, which is not read.
    fn cuLibraryLoadFromFile(
        machine;
        out: Out<u64>, path: In<c_char>,
        _jit_options: u64, _jit_values: u64, _jit_count: u32,
        _options: u64, _values: u64, _count: u32,
    ) {
        machine.load(&out, path.text().is_ok(), None)
    }

    /// Unloads a library.
    fn cuLibraryUnload(machine; library: u64) {
        machine.unload(library)
    }

    /// A kernel by name.
    fn cuLibraryGetKernel(machine; out: Out<u64>, library: u64, name: In<c_char>) {
        machine.find_function(&out, library, &name)
    }

    /// The library as a module of the current context: the same handle.
    fn cuLibraryGetModule(machine; out: Out<u64>, library: u64) {
        out.required()?;
        machine.modules.image(library)?;
        out.set(library)
    }

    /// A variable by name; both answers are optional.
    fn cuLibraryGetGlobal(
        machine;
        address: Out<u64>, size_bytes: Out<usize>, library: u64, name: In<c_char>
    ) {
        machine.find_variable(&address, &size_bytes, library, &name)
    }

    /// The kernel as a function of the current context: the same handle.
    fn cuKernelGetFunction(machine; out: Out<u64>, kernel: u64) {
        out.required()?;
        machine.modules.function(kernel)?;
        out.set(kernel)
    }

    /// The library that a kernel is of.
    fn cuKernelGetLibrary(machine; out: Out<u64>, kernel: u64) {
        out.required()?;
        out.set(machine.modules.function(kernel)?.image)
    }

    /// The module that a function is of.
    fn cuFuncGetModule(machine; out: Out<u64>, function: u64) {
        out.required()?;
        out.set(machine.modules.function(function)?.image)
    }

    /// A kernel's name, which lives as long as its library.
    fn cuKernelGetName(machine; out: Out<u64>, kernel: u64) {
        machine.name_of(&out, kernel)
    }

    /// A function's name, which lives as long as its module.
    fn cuFuncGetName(machine; out: Out<u64>, function: u64) {
        machine.name_of(&out, function)
    }

    /// A function is loaded: `CU_FUNCTION_LOADING_STATE_LOADED`.
    fn cuFuncIsLoaded(machine; out: Out<i32>, function: u64) {
        out.required()?;
        machine.modules.function(function)?;
        out.set(1)
    }

    /// It is already.
    fn cuFuncLoad(machine; function: u64) {
        machine.modules.function(function).map(drop)
    }

    /// A property of a function (`CUfunction_attribute`).
    fn cuFuncGetAttribute(machine; out: Out<i32>, attribute: i32, function: u64) {
        out.required()?;
        out.set(machine.modules.attribute(function, attribute)?)
    }

    /// A property of a kernel on a device: the same on each.
    fn cuKernelGetAttribute(machine; out: Out<i32>, attribute: i32, kernel: u64, device: i32) {
        out.required()?;
        machine.device(device)?;
        out.set(machine.modules.attribute(kernel, attribute)?)
    }

    /// Sets a property of a function that can be set.
    fn cuFuncSetAttribute(machine; function: u64, attribute: i32, value: i32) {
        machine.modules.set_attribute(function, attribute, value)
    }

    /// Sets a property of a kernel that can be set.
    fn cuKernelSetAttribute(machine; attribute: i32, value: i32, kernel: u64, device: i32) {
        machine.device(device)?;
        machine.modules.set_attribute(kernel, attribute, value)
    }

    /// A wish that means nothing here.
    fn cuFuncSetCacheConfig(machine; function: u64, _config: i32) {
        machine.modules.function(function).map(drop)
    }

    /// A wish that means nothing here.
    fn cuKernelSetCacheConfig(machine; kernel: u64, _config: i32, _device: i32) {
        machine.modules.function(kernel).map(drop)
    }

    /// Blocks that a multiprocessor holds.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        machine;
        out: Out<i32>, function: u64, block_threads: i32, _shared_bytes: usize
    ) {
        out.required()?;
        out.set(machine.modules.occupancy(function, block_threads)?)
    }

    /// The same, with a flag about caches.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        machine;
        out: Out<i32>, function: u64, block_threads: i32, _shared_bytes: usize, _flags: u32
    ) {
        out.required()?;
        out.set(machine.modules.occupancy(function, block_threads)?)
    }
}
