//! Symbols of objects that are already mapped, read from their dynamic sections.
//!
//! The shim exports `dlsym` itself, so it cannot ask the public one; and asking the loader from inside a hook could wait for
//! the lock that `dlopen` holds while it runs constructors. `dl_iterate_phdr` takes another one, which is held only while the
//! list of objects changes; and reading hash tables needs none.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::size_of;
use core::ptr::NonNull;

/// One mapped object, valid only inside the callback that gets it.
pub(crate) struct Object<'a> {
    info: &'a libc::dl_phdr_info,
}

/// `DT_*` entries that a look-up needs, as addresses in this process.
struct Dynamic {
    symbols: *const libc::Elf64_Sym,
    strings: *const c_char,
    gnu_hash: *const u32,
    sysv_hash: *const u32,
    versions: *const u16,
    soname: Option<usize>,
}

const DT_NULL: i64 = 0;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_SONAME: i64 = 14;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;
/// A version that only old binaries may bind to.
const VERSION_HIDDEN: u16 = 0x8000;
const STT_GNU_IFUNC: u8 = 10;

#[repr(C)]
struct Entry {
    tag: i64,
    value: u64,
}

impl Object<'_> {
    /// The path as the loader has it; empty for the main program.
    pub(crate) fn path(&self) -> &CStr {
        if self.info.dlpi_name.is_null() {
            return c"";
        }
        // SAFETY: the loader keeps the name as a C string while the object is mapped, which it is during the callback.
        unsafe { CStr::from_ptr(self.info.dlpi_name) }
    }

    /// Whether `address` lies in one of its segments.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.segments()
            .any(|(start, end)| (start..end).contains(&address))
    }

    /// The lowest and the highest address of its segments.
    pub(crate) fn range(&self) -> (usize, usize) {
        self.segments()
            .fold((usize::MAX, 0), |(low, high), (start, end)| {
                (low.min(start), high.max(end))
            })
    }

    /// Whether its `DT_SONAME`, or else the last part of its path, is `name`.
    pub(crate) fn is_named(&self, name: &CStr) -> bool {
        let soname = self.dynamic().and_then(|dynamic| {
            let offset = dynamic.soname?;
            // SAFETY: the offset comes from the object's own dynamic section and points into its string table.
            Some(unsafe { CStr::from_ptr(dynamic.strings.add(offset)) }.to_bytes())
        });
        let path = self.path().to_bytes();
        let last = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
        soname == Some(name.to_bytes()) || last == name.to_bytes()
    }

    /// The address of a symbol that the object defines itself.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let dynamic = self.dynamic()?;
        let index = if dynamic.gnu_hash.is_null() {
            dynamic.find_sysv(name)
        } else {
            dynamic.find_gnu(name)
        }?;
        // SAFETY: the index was found in the object's own hash table, so the symbol exists.
        let symbol = unsafe { &*dynamic.symbols.add(index as usize) };
        let address = (self.info.dlpi_addr as usize).wrapping_add(symbol.st_value as usize);
        // An indirect function's value is its resolver, not itself: no entry point that we look for is one.
        if symbol.st_info & 0xf == STT_GNU_IFUNC {
            None
        } else {
            NonNull::new(address as *mut c_void)
        }
    }

    fn headers(&self) -> &[libc::Elf64_Phdr] {
        if self.info.dlpi_phdr.is_null() {
            return &[];
        }
        // SAFETY: the loader gives the object's program headers and their number, mapped during the callback.
        unsafe {
            core::slice::from_raw_parts(self.info.dlpi_phdr, usize::from(self.info.dlpi_phnum))
        }
    }

    fn segments(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.headers()
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD)
            .map(|header| {
                let start = (self.info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
                (start, start.wrapping_add(header.p_memsz as usize))
            })
    }

    fn dynamic(&self) -> Option<Dynamic> {
        let base = self.info.dlpi_addr as usize;
        let header = self
            .headers()
            .iter()
            .find(|header| header.p_type == libc::PT_DYNAMIC)?;
        let entries = base.wrapping_add(header.p_vaddr as usize) as *const Entry;
        let count = header.p_memsz as usize / size_of::<Entry>();
        let mut dynamic = Dynamic {
            symbols: core::ptr::null(),
            strings: core::ptr::null(),
            gnu_hash: core::ptr::null(),
            sysv_hash: core::ptr::null(),
            versions: core::ptr::null(),
            soname: None,
        };
        for index in 0..count {
            // SAFETY: the dynamic section has `count` entries and is mapped.
            let entry = unsafe { &*entries.add(index) };
            // glibc relocates these in place, except in the vDSO, whose values stay small.
            let value = entry.value as usize;
            let address = if value < base {
                base.wrapping_add(value)
            } else {
                value
            };
            match entry.tag {
                DT_NULL => break,
                DT_SYMTAB => dynamic.symbols = address as *const _,
                DT_STRTAB => dynamic.strings = address as *const _,
                DT_GNU_HASH => dynamic.gnu_hash = address as *const _,
                DT_HASH => dynamic.sysv_hash = address as *const _,
                DT_VERSYM => dynamic.versions = address as *const _,
                DT_SONAME => dynamic.soname = Some(value),
                _ => {}
            }
        }
        (!dynamic.symbols.is_null() && !dynamic.strings.is_null()).then_some(dynamic)
    }
}

impl Dynamic {
    /// Whether symbol `index` is a visible definition of `name`.
    fn matches(&self, index: u32, name: &CStr) -> bool {
        // SAFETY: `index` comes from the hash table of the same object, so symbol, version and string exist.
        unsafe {
            let symbol = &*self.symbols.add(index as usize);
            if symbol.st_shndx == 0
                || CStr::from_ptr(self.strings.add(symbol.st_name as usize)) != name
            {
                return false;
            }
            self.versions.is_null() || *self.versions.add(index as usize) & VERSION_HIDDEN == 0
        }
    }

    fn find_gnu(&self, name: &CStr) -> Option<u32> {
        let hash = name.to_bytes().iter().fold(5381u32, |hash, &byte| {
            hash.wrapping_mul(33).wrapping_add(u32::from(byte))
        });
        // SAFETY: the layout of DT_GNU_HASH: four words, the Bloom filter, the buckets, the chains. All offsets below come
        // from these words, and a chain ends with an odd value.
        unsafe {
            let [buckets, first, bloom_words] = [0, 1, 2].map(|at| *self.gnu_hash.add(at));
            if buckets == 0 {
                return None;
            }
            let bucket = self.gnu_hash.add(4 + 2 * bloom_words as usize);
            let chains = bucket.add(buckets as usize);
            let mut index = *bucket.add((hash % buckets) as usize);
            if index < first {
                return None;
            }
            loop {
                let chain = *chains.add((index - first) as usize);
                if chain | 1 == hash | 1 && self.matches(index, name) {
                    return Some(index);
                }
                if chain & 1 == 1 {
                    return None;
                }
                index += 1;
            }
        }
    }

    fn find_sysv(&self, name: &CStr) -> Option<u32> {
        if self.sysv_hash.is_null() {
            return None;
        }
        // SAFETY: the layout of DT_HASH: number of buckets, number of symbols, the buckets, the chains; 0 ends a chain.
        unsafe {
            let count = *self.sysv_hash.add(1);
            (1..count).find(|&index| self.matches(index, name))
        }
    }
}

/// Calls `visit` for each mapped object until it gives something.
pub(crate) fn find_object<T>(mut visit: impl FnMut(&Object<'_>) -> Option<T>) -> Option<T> {
    struct Search<'a, T> {
        visit: &'a mut dyn FnMut(&Object<'_>) -> Option<T>,
        found: Option<T>,
    }
    unsafe extern "C" fn step<T>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the `Search` below, which outlives the iteration; `info` is the loader's, valid for this call.
        let (search, info) = unsafe { (&mut *data.cast::<Search<'_, T>>(), &*info) };
        search.found = (search.visit)(&Object { info });
        c_int::from(search.found.is_some())
    }
    let mut search = Search {
        visit: &mut visit,
        found: None,
    };
    // SAFETY: `step` gets the `Search` that it expects and does not unwind (the visitors below do not panic).
    unsafe { libc::dl_iterate_phdr(Some(step::<T>), (&raw mut search).cast()) };
    search.found
}

/// The address of `symbol` in the object named `object` (a soname).
pub(crate) fn symbol_in(object: &CStr, symbol: &CStr) -> Option<NonNull<c_void>> {
    find_object(|candidate| candidate.is_named(object).then(|| candidate.symbol(symbol))).flatten()
}

/// The address of `symbol` in the first object, in load order, that `accept`s and defines it.
pub(crate) fn symbol_anywhere(symbol: &CStr) -> Option<NonNull<c_void>> {
    find_object(|candidate| candidate.symbol(symbol))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_of_libc_is_the_one_that_the_linker_bound() {
        let found = symbol_in(c"libc.so.6", c"getpid").map(|address| address.as_ptr() as usize);
        assert_eq!(found, Some(libc::getpid as *const () as usize));
        assert!(symbol_in(c"libc.so.6", c"cuMemAlloc_v2").is_none());
        assert!(symbol_in(c"libnothere.so", c"getpid").is_none());
    }

    #[test]
    fn an_address_is_in_the_object_that_holds_it() {
        let address = libc::getpid as *const () as usize;
        assert_eq!(
            find_object(|object| object
                .contains(address)
                .then(|| object.is_named(c"libc.so.6"))),
            Some(true)
        );
        assert_eq!(find_object(|object| object.contains(8).then_some(())), None);
    }
}
