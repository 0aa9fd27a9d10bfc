//! Which ELF object holds an address.
//!
//! glibc 2.35 and later answer through `_dl_find_object`, without a lock and from any context. Older ones are asked through
//! `dl_iterate_phdr`, which takes the loader's lock for the time of the search: never called with a lock of our own held.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

/// A mapped object. Its pointers are good while the object cannot be closed, such as while a return address on this thread's
/// stack lies in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    /// The first mapped address.
    pub(crate) start: u64,
    /// The first address after it.
    pub(crate) end: u64,
    /// What the loader added to the addresses in the file.
    pub(crate) bias: u64,
    /// The path as the loader has it; empty for the main program.
    pub(crate) name: *const c_char,
    /// The table of `.eh_frame_hdr`; 0 if there is none.
    pub(crate) eh_frame_header: u64,
    /// The dynamic section; 0 if there is none.
    pub(crate) dynamic: u64,
}

/// The object that holds `address`, if any.
#[cold]
pub(crate) fn find(address: u64) -> Option<Object> {
    let Some(find_object) = finder() else {
        return through_program_headers(address);
    };
    let found = through_find_object(find_object, address)?;
    if found.is_whole() {
        Some(found)
    } else {
        through_program_headers(address)
    }
}

impl Object {
    /// Of a main program whose segments have gaps between them, glibc gives the segment alone, and its tables lie in another.
    fn is_whole(&self) -> bool {
        let holds = |address: u64| address == 0 || (self.start..self.end).contains(&address);
        holds(self.eh_frame_header) && holds(self.dynamic)
    }
}

/// `struct dl_find_object` of <dlfcn.h>, x86-64.
#[repr(C)]
struct Found {
    flags: u64,
    map_start: *mut c_void,
    map_end: *mut c_void,
    link_map: *const LinkMap,
    eh_frame: *mut c_void,
    reserved: [u64; 7],
}

/// The public head of `struct link_map` of <link.h>.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
    dynamic: u64,
}

type FindObject = unsafe extern "C" fn(*mut c_void, *mut Found) -> c_int;

/// The address of `_dl_find_object`, asked for once. The loader may be asked by several threads at once; the answer is one.
fn finder() -> Option<FindObject> {
    const NOT_ASKED: usize = 0;
    const ABSENT: usize = 1;
    static ADDRESS: AtomicUsize = AtomicUsize::new(NOT_ASKED);
    // Relaxed: the value is all there is to see.
    let mut address = ADDRESS.load(Ordering::Relaxed);
    if address == NOT_ASKED {
        address =
            crate::real::symbol(c"_dl_find_object").map_or(ABSENT, |found| found.as_ptr() as usize);
        ADDRESS.store(address, Ordering::Relaxed);
    }
    if address == ABSENT {
        return None;
    }
    // SAFETY: the C library's symbol of this name has this signature.
    Some(unsafe { core::mem::transmute::<usize, FindObject>(address) })
}

fn through_find_object(find_object: FindObject, address: u64) -> Option<Object> {
    let mut found = core::mem::MaybeUninit::<Found>::uninit();
    // SAFETY: the call takes any address and fills `found` when it returns 0.
    let found = unsafe {
        if find_object(address as *mut c_void, found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    // SAFETY: the loader keeps the link map while the object is mapped (see `Object`).
    let map = unsafe { found.link_map.as_ref() }?;
    Some(Object {
        start: found.map_start as u64,
        end: found.map_end as u64,
        bias: map.bias,
        name: map.name,
        eh_frame_header: found.eh_frame as u64,
        dynamic: map.dynamic,
    })
}

struct Search {
    address: u64,
    found: Option<Object>,
}

fn through_program_headers(address: u64) -> Option<Object> {
    let mut search = Search {
        address,
        found: None,
    };
    // SAFETY: `visit` gets the pointer to `search` back while it is alive, on this thread.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: `through_program_headers` passes its own `Search`; the loader passes a valid `info`.
    let (search, info) = unsafe { (&mut *search.cast::<Search>(), &*info) };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's own count of the program headers that it mapped.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let mut object = Object {
        start: u64::MAX,
        end: 0,
        bias: info.dlpi_addr,
        name: info.dlpi_name,
        eh_frame_header: 0,
        dynamic: 0,
    };
    for header in headers {
        let start = object.bias.wrapping_add(header.p_vaddr);
        match header.p_type {
            libc::PT_LOAD => {
                object.start = object.start.min(start);
                object.end = object.end.max(start.wrapping_add(header.p_memsz));
            }
            libc::PT_GNU_EH_FRAME => object.eh_frame_header = start,
            libc::PT_DYNAMIC => object.dynamic = start,
            _ => {}
        }
    }
    if search.address < object.start || search.address >= object.end {
        return 0;
    }
    // The loader rounds what it maps to pages.
    object.start &= !0xfff;
    search.found = Some(object);
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree() {
        let in_libc = libc::getpid as *const () as u64;
        let in_us = both_ways_agree as *const () as u64;
        for address in [in_libc, in_us] {
            // Of this program itself, one way may give a segment and the other all.
            let new = find(address).unwrap();
            let old = through_program_headers(address).unwrap();
            assert!((new.start..new.end).contains(&address));
            assert_eq!(
                (new.start, new.bias, new.eh_frame_header, new.dynamic),
                (old.start, old.bias, old.eh_frame_header, old.dynamic)
            );
        }
        assert!(find(8).is_none() && through_program_headers(8).is_none());
    }
}
