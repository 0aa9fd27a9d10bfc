//! Copies that leave holes where the source has holes.
//!
//! Memory that was never written is a hole: it reads as zero and costs nothing.
//! To read it byte by byte would fill it, and its copy too, so that a program
//! that computes nothing would need as much host memory as its device has. What
//! is asked instead is which pages hold data: of a file `SEEK_DATA` and
//! `SEEK_HOLE`, which know swapped pages too; of private pages the process's
//! page map (Linux, Documentation/admin-guide/mm/pagemap.rst).

use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::backing::{self, PAGE_BYTES, Pages};

/// Copies smaller than this are made byte by byte.
const LEAST_BYTES: u64 = 64 << 10;
/// Pages that are looked up in the page map at a time.
const ENTRIES: usize = 4096;
/// A page's entry says that it is in memory, or swapped out.
const HELD: u64 = 1 << 63 | 1 << 62;

/// Where the bytes of an address are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store {
    /// In private pages at the address.
    Private,
    /// In a file of this process, from this offset on.
    File {
        descriptor: libc::c_int,
        offset: u64,
    },
    /// Somewhere else: all of it may hold data.
    Unknown,
}

/// The first bytes of a range that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    bytes: u64,
    is_hole: bool,
}

impl Run {
    fn data(bytes: u64) -> Self {
        Self {
            bytes,
            is_hole: false,
        }
    }
}

/// Copies bytes to pages of a kind from what is kept there; what was a hole is
/// one again or zeros. The ranges may overlap where the store is unknown.
///
/// # Safety
/// The source may be read and the destination written, whose pages are of that
/// kind; the store is that of all of the source.
pub(crate) unsafe fn copy((to, pages): (u64, Pages), (from, store): (u64, Store), bytes: u64) {
    if bytes < LEAST_BYTES {
        // SAFETY: the caller vouches for both ranges.
        unsafe { backing::copy(to, from, bytes as usize) };
        return;
    }
    let mut done = 0;
    while done < bytes {
        let run = run(from + done, store.after(done), bytes - done);
        // SAFETY: a part of the caller's ranges.
        unsafe {
            if run.is_hole {
                backing::zero(to + done, run.bytes, pages);
            } else {
                backing::copy(to + done, from + done, run.bytes as usize);
            }
        }
        done += run.bytes;
    }
}

impl Store {
    /// The store of the address so many bytes on.
    fn after(self, bytes: u64) -> Self {
        match self {
            Self::File { descriptor, offset } => Self::File {
                descriptor,
                offset: offset + bytes,
            },
            other => other,
        }
    }
}

/// The first run of a range of `bytes` bytes, which are not none. What cannot be
/// asked is taken for data.
fn run(address: u64, store: Store, bytes: u64) -> Run {
    let found = match store {
        Store::Private => private_run(address, bytes),
        Store::File { descriptor, offset } => file_run(descriptor, offset, bytes),
        Store::Unknown => None,
    };
    found
        .filter(|run| run.bytes > 0)
        .unwrap_or(Run::data(bytes))
}

fn file_run(descriptor: libc::c_int, offset: u64, bytes: u64) -> Option<Run> {
    let seek = |whence| {
        let start = libc::off_t::try_from(offset).ok()?;
        // SAFETY: moves the position of a file that is only mapped.
        u64::try_from(unsafe { libc::lseek(descriptor, start, whence) }).ok()
    };
    // Offsets lie in the file, so that a failure means: no data up to its end.
    let data = seek(libc::SEEK_DATA).unwrap_or(u64::MAX);
    if data > offset {
        return Some(Run {
            bytes: bytes.min(data - offset),
            is_hole: true,
        });
    }
    let hole = seek(libc::SEEK_HOLE)?;
    Some(Run::data(bytes.min(hole.saturating_sub(offset))))
}

fn private_run(address: u64, bytes: u64) -> Option<Run> {
    // Opened each time: a process that was forked has a map of its own.
    let map = File::open("/proc/self/pagemap").ok()?;
    let first = address / PAGE_BYTES;
    let end = address.checked_add(bytes)?.div_ceil(PAGE_BYTES);
    let count = usize::try_from(end - first).ok()?.min(ENTRIES);
    let mut entries = vec![0; count * size_of::<u64>()];
    map.read_exact_at(&mut entries, first * size_of::<u64>() as u64)
        .ok()?;
    let mut held = entries
        .as_chunks()
        .0
        .iter()
        .map(|entry| u64::from_ne_bytes(*entry) & HELD != 0);
    let is_held = held.next()?;
    let alike = 1 + held.take_while(|held| *held == is_held).count() as u64;
    let run_end = (first + alike) * PAGE_BYTES;
    Some(Run {
        bytes: bytes.min(run_end - address),
        is_hole: !is_held,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of a range, each with its length in pages.
    fn runs(address: u64, store: Store, bytes: u64) -> Vec<(u64, bool)> {
        let mut runs = Vec::new();
        let mut at = 0;
        while at < bytes {
            let run = run(address + at, store.after(at), bytes - at);
            runs.push((run.bytes, run.is_hole));
            at += run.bytes;
        }
        runs
    }

    #[test]
    fn what_was_written_is_data_and_the_rest_holes() {
        let bytes = 64 * PAGE_BYTES;
        let mut file = backing::DeviceFile::default();
        let (shared, offset) = file.create_mapped(bytes).unwrap();
        let descriptor = file.descriptor().unwrap();
        let private = backing::map(bytes).unwrap();
        for (address, store) in [
            (shared, Store::File { descriptor, offset }),
            (private, Store::Private),
        ] {
            assert_eq!(runs(address, store, bytes), [(bytes, true)]);
            // SAFETY: two bytes of a mapping of ours.
            unsafe {
                backing::fill(address + 8 * PAGE_BYTES + 5, 1_u8, 1);
                backing::fill(address + 63 * PAGE_BYTES, 1_u8, 1);
            }
            let wanted = [
                (8 * PAGE_BYTES - 100, true),
                (PAGE_BYTES, false),
                (54 * PAGE_BYTES, true),
                (9, false),
            ];
            let part = 63 * PAGE_BYTES + 9 - 100;
            assert_eq!(runs(address + 100, store.after(100), part), wanted);
        }
        assert_eq!(runs(private, Store::Unknown, 10), [(10, false)]);
        // SAFETY: both are whole mappings of ours.
        unsafe {
            backing::unmap(shared, bytes);
            backing::unmap(private, bytes);
        }
    }
}
