//! The key/value arena: reserved addresses into which physical memory is
//! mapped as it is needed, until the arena is full. It grows, but it is no leak.

use crate::driver::{ACCESS, ByVersion, Error, PROPERTIES, check};

/// Pieces that the arena holds when it is full, one for each of the first
/// requests.
const PIECES: u32 = 8;
const WORKSPACE_BYTES: usize = 3 << 20;

/// The arena.
pub(crate) struct Arena<'a> {
    driver: &'a ByVersion,
    start: u64,
    piece_bytes: usize,
    mapped: u32,
}

impl<'a> Arena<'a> {
    /// Reserves the addresses of a full arena.
    #[inline(never)]
    pub(crate) fn reserve(driver: &'a ByVersion) -> Result<Self, Error> {
        let (mut start, mut piece_bytes) = (0, 0);
        // SAFETY: the answers go to local variables.
        unsafe {
            check(
                "cuMemGetAllocationGranularity",
                (driver.granularity)(&mut piece_bytes, &PROPERTIES, 0),
            )?;
            check(
                "cuMemAddressReserve",
                (driver.reserve)(&mut start, piece_bytes * PIECES as usize, 0, 0, 0),
            )?;
        }
        Ok(Self {
            driver,
            start,
            piece_bytes,
            mapped: 0,
        })
    }

    /// The driver that it uses.
    pub(crate) fn driver(&self) -> &'a ByVersion {
        self.driver
    }

    /// Maps one more piece, until the arena is full.
    #[inline(never)]
    pub(crate) fn grow(&mut self, step: u32) -> Result<(), Error> {
        if step >= PIECES {
            return Ok(());
        }
        let mut piece = 0;
        let address = self.start + u64::from(self.mapped) * self.piece_bytes as u64;
        // SAFETY: the piece goes to reserved addresses where none is yet. Once
        // mapped it needs no handle.
        unsafe {
            check(
                "cuMemCreate",
                (self.driver.create)(&mut piece, self.piece_bytes, &PROPERTIES, 0),
            )?;
            check(
                "cuMemMap",
                (self.driver.map)(address, self.piece_bytes, 0, piece, 0),
            )?;
            check("cuMemRelease", (self.driver.release)(piece))?;
            check(
                "cuMemSetAccess",
                (self.driver.set_access)(address, self.piece_bytes, &ACCESS, 1),
            )?;
        }
        self.mapped += 1;
        Ok(())
    }

    /// Pretends to attend: a workspace in the order of the null stream.
    #[inline(never)]
    pub(crate) fn attend(&self) -> Result<(), Error> {
        let mut workspace = 0;
        // SAFETY: the workspace goes to a local variable, and back at once.
        unsafe {
            check(
                "cuMemAllocAsync",
                (self.driver.allocate_async)(&mut workspace, WORKSPACE_BYTES, 0),
            )?;
            check("cuMemFreeAsync", (self.driver.free_async)(workspace, 0))?;
            check("cuStreamSynchronize", (self.driver.synchronise)(0))
        }
    }

    /// Gives everything back.
    pub(crate) fn release(&mut self) -> Result<(), Error> {
        let whole_bytes = self.piece_bytes * PIECES as usize;
        let mapped_bytes = self.piece_bytes * self.mapped as usize;
        // SAFETY: nothing uses the arena any more; the mapped pieces lie side
        // by side at its start.
        unsafe {
            if self.mapped > 0 {
                check("cuMemUnmap", (self.driver.unmap)(self.start, mapped_bytes))?;
            }
            self.mapped = 0;
            check(
                "cuMemAddressFree",
                (self.driver.free_range)(self.start, whole_bytes),
            )
        }
    }
}
