//! The host memory behind simulated device memory.
//!
//! A device address is the address of a lazily backed host mapping, so that it
//! never collides with one of the host's own and copies are real. Memory that
//! is never written costs nothing.

use std::fs::OpenOptions;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Size of a host page; what is smaller is mapped as one.
pub(crate) const PAGE_BYTES: u64 = 4096;

/// Zero fills of at least this size give the pages back instead.
const DISCARD_BYTES: u64 = 64 << 10;

/// What kind of pages a range has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    /// Of [`map`].
    Private,
    /// Of a file of this module.
    Shared,
    /// The program's.
    Foreign,
}

/// New zeroed memory of at least `size_bytes`, aligned to a page. `None` when
/// the host has no address space left.
pub(crate) fn map(size_bytes: u64) -> Option<u64> {
    let address = anonymous(pages(size_bytes)?, libc::PROT_READ | libc::PROT_WRITE)?;
    Some(address)
}

/// Gives back what [`map`] or [`reserve`] gave.
///
/// # Safety
/// The range came from there with this size, and nothing uses it any more.
pub(crate) unsafe fn unmap(address: u64, size_bytes: u64) {
    if let Some(bytes) = pages(size_bytes) {
        // SAFETY: the caller vouches for the range.
        unsafe { libc::munmap(address as *mut libc::c_void, bytes as usize) };
    }
}

/// Addresses without memory, aligned to `alignment_bytes` (a power of two).
pub(crate) fn reserve(size_bytes: u64, alignment_bytes: u64) -> Option<u64> {
    let alignment = alignment_bytes.max(PAGE_BYTES);
    let whole = pages(size_bytes)?.checked_add(alignment)?;
    let start = anonymous(whole, libc::PROT_NONE)?;
    let address = start.next_multiple_of(alignment);
    let end = address + size_bytes;
    // SAFETY: both ends lie in the mapping just made, outside what is kept.
    unsafe {
        if address > start {
            libc::munmap(start as *mut libc::c_void, (address - start) as usize);
        }
        if start + whole > end {
            libc::munmap(end as *mut libc::c_void, (start + whole - end) as usize);
        }
    }
    Some(address)
}

/// Copies `bytes` bytes, holes and all ([`crate::sparse::copy`] keeps them); the
/// ranges may overlap.
///
/// # Safety
/// The source may be read and the destination written.
pub(crate) unsafe fn copy(destination: u64, source: u64, bytes: usize) {
    // SAFETY: the caller vouches for both ranges.
    unsafe { std::ptr::copy(source as *const u8, destination as *mut u8, bytes) };
}

/// Fills `count` elements with `value`.
///
/// # Safety
/// The range may be written.
pub(crate) unsafe fn fill<T: Copy>(address: u64, value: T, count: usize) {
    for index in 0..count {
        // SAFETY: the caller vouches for the range; alignment is not his duty.
        unsafe { (address as *mut T).add(index).write_unaligned(value) };
    }
}

/// Fills with zeros; whole pages that are ours are given back.
///
/// # Safety
/// The range may be written, and its pages are of that kind.
pub(crate) unsafe fn zero(address: u64, size_bytes: u64, pages: Pages) {
    let advice = match pages {
        Pages::Private => libc::MADV_DONTNEED,
        Pages::Shared | Pages::Foreign => libc::MADV_REMOVE,
    };
    let first_page = address.next_multiple_of(PAGE_BYTES);
    let end = address + size_bytes;
    let last_page = end / PAGE_BYTES * PAGE_BYTES;
    if pages == Pages::Foreign || size_bytes < DISCARD_BYTES {
        // SAFETY: the caller vouches for the range.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, size_bytes as usize) };
        return;
    }
    // SAFETY: the three parts make up the caller's range; private pages
    // read as zero after MADV_DONTNEED, those of a file after MADV_REMOVE.
    unsafe {
        std::ptr::write_bytes(address as *mut u8, 0, (first_page - address) as usize);
        libc::madvise(
            first_page as *mut libc::c_void,
            (last_page - first_page) as usize,
            advice,
        );
        std::ptr::write_bytes(last_page as *mut u8, 0, (end - last_page) as usize);
    }
}

fn pages(size_bytes: u64) -> Option<u64> {
    size_bytes.checked_next_multiple_of(PAGE_BYTES)
}

fn anonymous(bytes: u64, protection: libc::c_int) -> Option<u64> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches
    // nothing that exists.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            protection,
            flags,
            -1,
            0,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

/// Maps a piece of another process's file.
pub(crate) fn map_file(path: &str, size_bytes: u64, offset: u64) -> Option<u64> {
    let file = OpenOptions::new().read(true).write(true).open(path).ok()?;
    shared(pages(size_bytes)?, file.as_raw_fd(), offset)
}

fn shared(bytes: u64, file: libc::c_int, offset: u64) -> Option<u64> {
    let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice touches
    // nothing that exists.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            file,
            libc::off_t::try_from(offset).ok()?,
        )
    };
    (address != libc::MAP_FAILED).then_some(address as u64)
}

/// Device memory as pieces of one sparse file, so that a piece can be mapped
/// many times, in other processes too, and needs no descriptor of its own.
#[derive(Default)]
pub(crate) struct DeviceFile {
    file: Option<OwnedFd>,
    end: u64,
}

impl DeviceFile {
    /// The file's descriptor, once there is a piece.
    pub(crate) fn descriptor(&self) -> Option<libc::c_int> {
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// A new zeroed piece, mapped: its address and its offset.
    pub(crate) fn create_mapped(&mut self, size_bytes: u64) -> Option<(u64, u64)> {
        let bytes = pages(size_bytes)?;
        let offset = self.create(bytes)?;
        let address = shared(bytes, self.descriptor()?, offset)?;
        Some((address, offset))
    }

    /// A new zeroed piece of the file: its offset. Offsets are never used
    /// again, since the file costs only what was written and not given back.
    pub(crate) fn create(&mut self, size_bytes: u64) -> Option<u64> {
        let offset = self.end;
        let end = offset.checked_add(size_bytes)?;
        let length = libc::off_t::try_from(end).ok()?;
        let file = self.open()?;
        // SAFETY: a call on a descriptor that we own.
        if unsafe { libc::ftruncate(file, length) } != 0 {
            return None;
        }
        self.end = end;
        Some(offset)
    }

    /// Gives back a piece's memory.
    pub(crate) fn discard(&self, offset: u64, size_bytes: u64) {
        let size_bytes = size_bytes.next_multiple_of(PAGE_BYTES);
        let Some(file) = &self.file else { return };
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        // SAFETY: a call on a descriptor that we own. Offsets fit: the file has
        // been extended over them.
        unsafe {
            libc::fallocate(
                file.as_raw_fd(),
                mode,
                offset as libc::off_t,
                size_bytes as libc::off_t,
            )
        };
    }

    /// Maps a piece, without access, over a reserved range.
    ///
    /// # Safety
    /// The range lies in one that [`reserve`] gave, and nothing uses it.
    pub(crate) unsafe fn map_over(&self, address: u64, size_bytes: u64, offset: u64) -> bool {
        let Some(file) = &self.file else { return false };
        let flags = libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: the caller vouches that the range is ours to replace.
        let mapped = unsafe {
            libc::mmap(
                address as *mut libc::c_void,
                size_bytes as usize,
                libc::PROT_NONE,
                flags,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        mapped != libc::MAP_FAILED
    }

    fn open(&mut self) -> Option<libc::c_int> {
        if self.file.is_none() {
            // SAFETY: the name is a zero-ended string, and a descriptor that is
            // not negative is new and ours.
            let file = unsafe {
                let raw = libc::memfd_create(c"gpumem-simulated".as_ptr(), libc::MFD_CLOEXEC);
                (raw >= 0).then(|| OwnedFd::from_raw_fd(raw))
            };
            self.file = file;
        }
        self.file.as_ref().map(AsRawFd::as_raw_fd)
    }
}

/// Makes a mapped range a bare reservation again.
///
/// # Safety
/// The range lies in one that [`reserve`] gave, and nothing uses it.
pub(crate) unsafe fn unmap_over(address: u64, size_bytes: u64) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the caller vouches that the range is ours to replace.
    unsafe {
        libc::mmap(
            address as *mut libc::c_void,
            size_bytes as usize,
            libc::PROT_NONE,
            flags,
            -1,
            0,
        )
    };
}

/// Sets what may be done with a mapped range.
///
/// # Safety
/// The range was mapped by [`DeviceFile::map_over`].
pub(crate) unsafe fn protect(address: u64, size_bytes: u64, read: bool, write: bool) {
    let mut protection = libc::PROT_NONE;
    if read {
        protection |= libc::PROT_READ;
    }
    if write {
        protection |= libc::PROT_WRITE;
    }
    // SAFETY: the caller vouches for the range.
    unsafe {
        libc::mprotect(
            address as *mut libc::c_void,
            size_bytes as usize,
            protection,
        )
    };
}
