//! What the small numbers of a process stand for: its definitions, by number, bounded.

use std::collections::{BTreeMap, HashMap};

use gpumem_wire::define::{
    CodeDefinition, DeviceDefinition, ModuleDefinition, StackDefinition, SymbolDefinition,
    SymbolFunction,
};
use gpumem_wire::{ApiId, CodeId, Definition, DeviceOrdinal, Frame, ModuleId, StackId, ThreadId};

/// How many definitions of one process are kept.
const DEFINITIONS: usize = 2_000_000;
/// Bytes of definitions of one process that are kept, as they lie in memory, about.
const DEFINITION_BYTES: usize = 512 << 20;
/// How many of the shim's notices are kept.
const NOTICES: usize = 100;

/// A thread of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The kernel's id.
    pub tid: u32,
    /// The kernel's name for it.
    pub name: String,
}

/// The definitions of one process. A number that is defined twice keeps its last meaning, as in the shim.
#[derive(Default)]
pub struct Definitions {
    apis: HashMap<ApiId, String>,
    threads: BTreeMap<ThreadId, Thread>,
    devices: BTreeMap<DeviceOrdinal, DeviceDefinition>,
    modules: HashMap<ModuleId, ModuleDefinition>,
    codes: HashMap<CodeId, CodeDefinition>,
    stacks: HashMap<StackId, StackDefinition>,
    marks: HashMap<u32, String>,
    symbols: HashMap<(ModuleId, u64), Vec<SymbolFunction>>,
    sources: HashMap<String, BTreeMap<u32, String>>,
    notices: Vec<String>,
    count: usize,
    bytes: usize,
    refused: u64,
}

impl Definitions {
    /// Keeps a definition. [`Definition::Process`], [`Definition::Python`] and [`Definition::End`] say something about the
    /// process as a whole: they are the model's and are not kept here.
    pub fn add(&mut self, definition: Definition) {
        let bytes = weight(&definition);
        if self.count >= DEFINITIONS || self.bytes + bytes > DEFINITION_BYTES {
            self.refused += 1;
            return;
        }
        self.count += 1;
        self.bytes += bytes;
        match definition {
            Definition::Api { id, name } => drop(self.apis.insert(ApiId(id), name)),
            Definition::Thread { id, tid, name } => {
                self.threads.insert(id, Thread { tid, name });
            }
            Definition::Device(device) => {
                self.devices.insert(DeviceOrdinal(device.ordinal), device);
            }
            Definition::Module(module) => drop(self.modules.insert(module.id, module)),
            Definition::Code(code) => drop(self.codes.insert(code.id, code)),
            Definition::Stack(stack) => drop(self.stacks.insert(stack.id, stack)),
            Definition::Mark { id, name } => drop(self.marks.insert(id, name)),
            Definition::Symbol(symbol) => {
                self.symbols
                    .insert((symbol.module, symbol.address), symbol.functions);
            }
            Definition::Source { file, line, text } => {
                self.sources.entry(file).or_default().insert(line, text);
            }
            Definition::Notice { text } => {
                if self.notices.len() < NOTICES {
                    self.notices.push(text);
                }
            }
            Definition::Process(_) | Definition::Python(_) | Definition::End(_) => {}
        }
    }

    /// The entry point's exported symbol.
    pub fn api(&self, id: ApiId) -> Option<&str> {
        self.apis.get(&id).map(String::as_str)
    }

    /// The thread.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.threads.get(&id)
    }

    /// The device.
    pub fn device(&self, ordinal: DeviceOrdinal) -> Option<&DeviceDefinition> {
        self.devices.get(&ordinal)
    }

    /// All devices that were named, by ordinal.
    pub fn devices(&self) -> impl Iterator<Item = &DeviceDefinition> {
        self.devices.values()
    }

    /// The ELF object.
    pub fn module(&self, id: ModuleId) -> Option<&ModuleDefinition> {
        self.modules.get(&id)
    }

    /// The Python code object.
    pub fn code(&self, id: CodeId) -> Option<&CodeDefinition> {
        self.codes.get(&id)
    }

    /// The stack; `None` for [`StackId::NONE`], [`StackId::OVERFLOW`] and for one whose definition was lost.
    pub fn stack(&self, id: StackId) -> Option<&StackDefinition> {
        self.stacks.get(&id)
    }

    /// All stacks, in no order.
    pub fn stacks(&self) -> impl Iterator<Item = &StackDefinition> {
        self.stacks.values()
    }

    /// The mark's name.
    pub fn mark(&self, id: u32) -> Option<&str> {
        self.marks.get(&id).map(String::as_str)
    }

    /// The functions at a native address, innermost first; empty where it was looked up in vain, `None` where it was not
    /// looked up yet.
    pub fn symbol(&self, module: ModuleId, address: u64) -> Option<&[SymbolFunction]> {
        self.symbols.get(&(module, address)).map(Vec::as_slice)
    }

    /// The text of a source line.
    pub fn source(&self, file: &str, line: u32) -> Option<&str> {
        self.sources.get(file)?.get(&line).map(String::as_str)
    }

    /// What the shim said it gave up, in its words.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The bytes that they take in memory, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Definitions that were not kept because there were too many.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The module that called the driver: that of the nearest frame that is not the shim's, the CUDA runtime's or the
    /// driver's own.
    pub fn calling_module(&self, stack: &StackDefinition) -> Option<&ModuleDefinition> {
        stack
            .frames
            .iter()
            .filter_map(|frame| match *frame {
                Frame::Native { module, .. } => self.module(module),
                _ => None,
            })
            .find(|module| !is_cuda_plumbing(&module.path))
    }
}

/// Whether a module only passes memory calls on: the shim, the CUDA runtime and the driver (the simulated one too).
pub fn is_cuda_plumbing(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libgpumem", "libcudart", "libcuda.so", "libcuda-"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// The bytes that a definition takes in memory, about.
fn weight(definition: &Definition) -> usize {
    let heap = match definition {
        Definition::Api { name, .. }
        | Definition::Thread { name, .. }
        | Definition::Mark { name, .. } => name.len(),
        Definition::Device(device) => device.uuid.len() + device.name.len(),
        Definition::Module(module) => module.path.len(),
        Definition::Code(code) => code.function.len() + code.file.len(),
        Definition::Stack(stack) => stack.frames.len() * size_of::<Frame>(),
        Definition::Symbol(symbol) => symbol
            .functions
            .iter()
            .map(|function| {
                size_of::<SymbolFunction>() + function.function.len() + function.file.len()
            })
            .sum(),
        Definition::Source { file, text, .. } => file.len() + text.len(),
        Definition::Notice { text } => text.len(),
        Definition::Process(_) | Definition::Python(_) | Definition::End(_) => 0,
    };
    // The largest record of a table, its key and its slot's overhead.
    heap + size_of::<SymbolDefinition>() + 48
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{Trace, alloc, torch_segment};

    #[test]
    fn the_caller_of_the_driver_is_neither_the_runtime_nor_the_shim() {
        let mut trace = Trace::new();
        trace.push(
            alloc(0x1000, 1)
                .native("/opt/libgpumemshim.so", "cuMemAlloc_v2", "", 0)
                .native("/usr/lib/libcuda.so.1", "cuMemAlloc_v2", "", 0)
                .native("/usr/lib/libcudart.so.12", "cudaMalloc", "", 0)
                .native("/usr/lib/libcublas.so.12", "cublasCreate", "", 0)
                .native("/usr/bin/app", "main", "", 0),
        );
        trace.push(torch_segment(0x2000, 1));
        let process = trace.process();
        let caller = |id| {
            let definitions = process.definitions();
            let stack = definitions.stack(StackId(id)).expect("a stack");
            definitions
                .calling_module(stack)
                .map(|module| module.path.clone())
        };
        assert_eq!(caller(2).as_deref(), Some("/usr/lib/libcublas.so.12"));
        assert_eq!(caller(3).as_deref(), Some("libc10_cuda.so"));
    }
}
