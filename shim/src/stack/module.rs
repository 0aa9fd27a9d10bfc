//! From a return address to (module, offset), which mean the same in every process and after it.

use core::ffi::CStr;

use gpumem_wire::define::ModuleDefinition;
use gpumem_wire::{Definition, Frame, ModuleId, limits};

use super::fold::Fold;
use super::intern::{self, Table};
use super::native::{elf, object};
use super::python;

/// By what makes a module the same: where it lies, its build id and its path.
static MODULES: Table = Table::new(13, 1);

/// The modules that this thread resolved lately. All zeros is an empty cache.
pub(crate) struct ModuleCache {
    entries: [Entry; 16],
    epoch: u64,
    next: usize,
    last: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    start: u64,
    end: u64,
    bias: u64,
    id: u32,
}

/// Working memory for one definition.
pub(crate) struct Desk {
    /// For strings that are put together.
    pub(crate) text: [u8; 2 * limits::STRING_BYTES],
    /// For one encoded definition: the deepest stack takes 24 KiB.
    pub(crate) encoded: [u8; 48 << 10],
}

impl ModuleCache {
    /// The frame of a return address. `epoch`: that of the rule table, in which an address means one object.
    pub(crate) fn frame(&mut self, address: u64, epoch: u64, desk: &mut Desk) -> Frame {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.forget();
        }
        // A call at a module's very end returns to the address behind it.
        let call = address - 1;
        let known = self.known(call).or_else(|| self.add(call, desk));
        match known {
            Some(entry) => Frame::Native {
                module: ModuleId(entry.id),
                address: address.wrapping_sub(entry.bias),
            },
            None => Frame::Unknown { address },
        }
    }

    /// Neighbouring frames are mostly of one module, so the last one found is tried first.
    fn known(&mut self, call: u64) -> Option<Entry> {
        let holds = |entry: &&Entry| call >= entry.start && call < entry.end;
        if let Some(last) = self.entries.get(self.last).filter(holds) {
            return Some(*last);
        }
        self.last = self.entries.iter().position(|entry| holds(&entry))?;
        self.entries.get(self.last).copied()
    }

    fn forget(&mut self) {
        for entry in &mut self.entries {
            entry.end = 0;
        }
    }

    #[cold]
    fn add(&mut self, address: u64, desk: &mut Desk) -> Option<Entry> {
        let object = object::find(address)?;
        let entry = Entry {
            start: object.start,
            end: object.end,
            bias: object.bias,
            id: define(&object, desk)?,
        };
        let place = self.entries.get_mut(self.next % 16)?;
        *place = entry;
        self.next += 1;
        Some(entry)
    }
}

fn define(object: &object::Object, desk: &mut Desk) -> Option<u32> {
    let build_id = elf::build_id(object);
    let path = path(object, &mut desk.text);
    let mut identity = Fold::new();
    identity.word(object.start);
    identity.word(object.bias);
    identity.bytes(build_id.as_bytes());
    identity.bytes(path.as_bytes());
    let encoded = &mut desk.encoded;
    MODULES.intern(identity.finish(), |id| {
        // Where Python's stack is needed, its interpreter is on the native stack: this is how it is found.
        python::consider(object);
        let module = ModuleDefinition {
            id: ModuleId(id),
            path,
            start: object.start,
            build_id,
        };
        intern::define(&Definition::Module(module), encoded)
    })
}

/// The object's path; of the main program, which the loader knows as "", what `/proc/self/exe` points to.
fn path<'a>(object: &object::Object, text: &'a mut [u8]) -> &'a str {
    let name = if object.name.is_null() {
        &[]
    } else {
        // SAFETY: the loader's own string, which lives as long as the object is mapped.
        unsafe { CStr::from_ptr(object.name) }.to_bytes()
    };
    let length = if name.is_empty() {
        // SAFETY: the kernel writes at most `text.len()` bytes.
        let length = unsafe {
            libc::readlink(
                c"/proc/self/exe".as_ptr(),
                text.as_mut_ptr().cast(),
                text.len(),
            )
        };
        usize::try_from(length).unwrap_or(0)
    } else {
        for (to, from) in text.iter_mut().zip(name) {
            *to = *from;
        }
        name.len()
    };
    let bytes = text.get(..length.min(limits::STRING_BYTES)).unwrap_or(&[]);
    match core::str::from_utf8(bytes) {
        Ok(path) => path,
        // Up to the first byte that is not UTF-8: the build id still tells which file it is.
        Err(error) => {
            core::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or(&[])).unwrap_or("")
        }
    }
}
