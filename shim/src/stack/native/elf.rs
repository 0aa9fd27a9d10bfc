//! What a mapped ELF object says about itself: its exported symbols and its build id.
//!
//! Read from the object's own memory, so no file is opened and no lock of the loader's is taken: a hook may hold locks of the
//! program that another thread, inside `dlopen`, is waiting for.

use core::ffi::CStr;

use gpumem_wire::define::BuildId;

use super::object::Object;

const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
const PF_R: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;

/// An object seen as memory. All reads stay in `[start, end)` of the mapping.
struct Memory<'a>(&'a Object);

impl Memory<'_> {
    fn read<T: Copy>(&self, address: u64) -> Option<T> {
        let size = size_of::<T>() as u64;
        let inside =
            address >= self.0.start && address < self.0.end && self.0.end - address >= size;
        // SAFETY: inside the object's mapping, at an address that its headers or tables named; `T` is a plain integer or
        // an array of bytes.
        inside.then(|| unsafe { (address as *const T).read_unaligned() })
    }
}

/// The address of a function or variable that `object` itself exports.
pub(crate) fn symbol(object: &Object, name: &CStr) -> Option<u64> {
    let memory = Memory(object);
    let (mut names, mut symbols, mut table) = (0, 0, 0);
    let mut entry = object.dynamic;
    loop {
        let (tag, value) = (memory.read::<u64>(entry)?, memory.read::<u64>(entry + 8)?);
        // The loader relocates these in place, except in objects that it maps read-only.
        let address = if value < object.start {
            value.wrapping_add(object.bias)
        } else {
            value
        };
        match tag {
            0 => break,
            DT_STRTAB => names = address,
            DT_SYMTAB => symbols = address,
            DT_GNU_HASH => table = address,
            _ => {}
        }
        entry += 16;
    }

    // The GNU hash table: four numbers, a Bloom filter, buckets, and chains of hashes whose lowest bit ends a chain.
    let hash = gnu_hash(name.to_bytes());
    let buckets: u32 = memory.read(table)?;
    let first: u32 = memory.read(table + 4)?;
    let filter: u32 = memory.read(table + 8)?;
    let bucket_table = table + 16 + 8 * u64::from(filter);
    let chains = bucket_table + 4 * u64::from(buckets);
    let mut index: u32 = memory.read(bucket_table + 4 * u64::from(hash.checked_rem(buckets)?))?;
    while index >= first && index != 0 {
        let chained: u32 = memory.read(chains + 4 * u64::from(index - first))?;
        if chained | 1 == hash | 1 {
            // Elf64_Sym: name (4 bytes), info, other, section (2), value (8), size (8).
            let symbol = symbols + 24 * u64::from(index);
            let at = names + u64::from(memory.read::<u32>(symbol)?);
            let section: u16 = memory.read(symbol + 6)?;
            if section != 0 && same_name(&memory, at, name) {
                return Some(memory.read::<u64>(symbol + 8)?.wrapping_add(object.bias));
            }
        }
        if chained & 1 != 0 {
            return None;
        }
        index += 1;
    }
    None
}

fn gnu_hash(name: &[u8]) -> u32 {
    name.iter().fold(5381u32, |hash, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

fn same_name(memory: &Memory<'_>, at: u64, name: &CStr) -> bool {
    let mut bytes = name.to_bytes_with_nul().iter().zip(at..);
    bytes.all(|(byte, address)| memory.read::<u8>(address) == Some(*byte))
}

/// The object's GNU build id; empty where it has none.
pub(crate) fn build_id(object: &Object) -> BuildId {
    find_build_id(object).unwrap_or_default()
}

fn find_build_id(object: &Object) -> Option<BuildId> {
    let memory = Memory(object);
    // The first mapping starts with the file's first byte in every object that a linker makes.
    if memory.read::<[u8; 4]>(object.start)? != *b"\x7fELF" {
        return None;
    }
    let headers = object.start + memory.read::<u64>(object.start + 32)?;
    let size = u64::from(memory.read::<u16>(object.start + 54)?);
    let count = u64::from(memory.read::<u16>(object.start + 56)?);
    let header = |index: u64| {
        let at = headers + index * size;
        let kind: u32 = memory.read(at)?;
        let flags: u32 = memory.read(at + 4)?;
        let start = memory.read::<u64>(at + 16)?.wrapping_add(object.bias);
        Some((
            kind,
            flags,
            start,
            start.wrapping_add(memory.read(at + 40)?),
        ))
    };
    for index in 0..count {
        let (kind, _, start, end) = header(index)?;
        // A note can be read only where a readable segment covers it.
        let covered = |other| matches!(header(other), Some((PT_LOAD, flags, low, high)) if flags & PF_R != 0 && low <= start && end <= high);
        if kind == PT_NOTE && (0..count).any(covered) {
            let found = build_id_note(&memory, start, end);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

fn build_id_note(memory: &Memory<'_>, mut at: u64, end: u64) -> Option<BuildId> {
    while at + 12 <= end {
        let name_length = u64::from(memory.read::<u32>(at)?);
        let length = memory.read::<u32>(at + 4)?;
        let kind: u32 = memory.read(at + 8)?;
        let body = at + 12 + name_length.next_multiple_of(4);
        if kind == NT_GNU_BUILD_ID
            && name_length == 4
            && memory.read::<[u8; 4]>(at + 12)? == *b"GNU\0"
        {
            let mut id = BuildId::default();
            for (to, from) in id.bytes.iter_mut().zip(body..).take(length as usize) {
                *to = memory.read(from)?;
                id.length += 1;
            }
            return Some(id);
        }
        at = body + u64::from(length).next_multiple_of(4);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::object;
    use super::*;

    fn libc_object() -> Object {
        object::find(libc::getpid as *const () as u64).unwrap()
    }

    #[test]
    fn a_symbol_is_where_the_loader_says() {
        let object = libc_object();
        for name in [c"getpid", c"environ", c"qsort"] {
            // SAFETY: a plain look-up by name.
            let loader = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as u64;
            assert_eq!(symbol(&object, name), Some(loader), "{name:?}");
        }
        assert_eq!(symbol(&object, c"getpi"), None);
        assert_eq!(symbol(&object, c"no_such_symbol_here"), None);
    }

    #[test]
    fn the_build_id_is_read_from_memory() {
        assert_eq!(build_id(&libc_object()).as_bytes().len(), 20);
    }
}
