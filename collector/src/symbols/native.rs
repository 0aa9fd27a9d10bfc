//! Names of native frames, from the ELF objects on this machine.
//!
//! A file is believed only if its build id is the one that the target had mapped. One batch a module, and only the addresses
//! that some stack uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use blazesym::helper::read_elf_build_id;
use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{CodeInfo, Input, Sym, Symbolized, Symbolizer};
use gpumem_wire::define::{BuildId, ModuleDefinition, SymbolDefinition, SymbolFunction};
use gpumem_wire::{Definition, Frame, ModuleId};

use crate::model::Process;

/// Files larger than this are asked for their symbol table alone: their debug information would take seconds and gigabytes.
const DEBUG_INFO_FILE_BYTES: u64 = 256 << 20;

/// Looks up every native address that a stack uses and that has no name yet. Addresses of modules that are not here, or are
/// here in another build, are left for a reader who has them.
pub fn symbolise(process: &Process) -> Vec<Definition> {
    let mut found = Vec::new();
    for (id, addresses) in unnamed(process) {
        let Some(module) = process.definitions().module(id) else {
            continue;
        };
        let Some(size) = size_if_same(module) else {
            continue;
        };
        let addresses: Vec<u64> = addresses.into_iter().collect();
        found.extend(batch(module, &addresses, size <= DEBUG_INFO_FILE_BYTES));
    }
    found
}

/// The addresses without a name, by module.
fn unnamed(process: &Process) -> BTreeMap<ModuleId, BTreeSet<u64>> {
    let mut unnamed: BTreeMap<ModuleId, BTreeSet<u64>> = BTreeMap::new();
    let definitions = process.definitions();
    for frame in definitions.stacks().flat_map(|stack| &stack.frames) {
        if let Frame::Native { module, address } = *frame
            && definitions.symbol(module, address).is_none()
        {
            unnamed.entry(module).or_default().insert(address);
        }
    }
    unnamed
}

/// The size of the module's file, if it is the build that was mapped.
fn size_if_same(module: &ModuleDefinition) -> Option<u64> {
    let path = Path::new(&module.path);
    if !path.is_absolute() {
        return None;
    }
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    // In a file without an id blazesym 0.2.7 takes a SystemTap note for one, which is longer than any id that a linker writes.
    let here = read_elf_build_id(path)
        .ok()
        .flatten()
        .filter(|id| id.len() <= BuildId::default().bytes.len());
    let here = here.as_deref().unwrap_or(&[]);
    (here == module.build_id.as_bytes()).then_some(metadata.len())
}

/// The names of some addresses of one module. An address in no function gets a definition without functions, so that it is
/// not looked up again.
fn batch(module: &ModuleDefinition, addresses: &[u64], debug_info: bool) -> Vec<Definition> {
    let mut elf = Elf::new(&module.path);
    elf.debug_syms = debug_info;
    let source = Source::Elf(elf);
    // A return address is the one after the call: one byte before it lies in the call, and so in its line.
    let calls: Vec<u64> = addresses
        .iter()
        .map(|address| address.saturating_sub(1))
        .collect();
    let symbolizer = Symbolizer::new();
    let Ok(symbols) = symbolizer.symbolize(&source, Input::VirtOffset(&calls)) else {
        return Vec::new();
    };
    addresses
        .iter()
        .zip(symbols)
        .map(|(&address, symbol)| {
            let functions = match symbol {
                Symbolized::Sym(symbol) => functions(&symbol),
                Symbolized::Unknown(_) => Vec::new(),
            };
            Definition::Symbol(SymbolDefinition {
                module: module.id,
                address,
                functions,
            })
        })
        .collect()
}

/// The functions of one address, innermost first: blazesym gives the outermost, then those inlined into it from the outside in.
fn functions(symbol: &Sym<'_>) -> Vec<SymbolFunction> {
    let inlined = symbol
        .inlined
        .iter()
        .rev()
        .map(|function| function_of(&function.name, function.code_info.as_ref()));
    inlined
        .chain([function_of(&symbol.name, symbol.code_info.as_deref())])
        .collect()
}

fn function_of(name: &str, code: Option<&CodeInfo<'_>>) -> SymbolFunction {
    SymbolFunction {
        function: name.to_owned(),
        file: code.map_or_else(String::new, |code| {
            code.to_path().to_string_lossy().into_owned()
        }),
        line: code.and_then(|code| code.line).unwrap_or(0),
    }
}
