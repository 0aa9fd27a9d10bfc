//! The model: weights that live as long as it does, and a scratch buffer in
//! each forward pass.

use crate::driver::{ByName, Error, check};

/// One buffer a layer.
const LAYER_BYTES: [usize; 4] = [64 << 20, 32 << 20, 16 << 20, 8 << 20];
const SCRATCH_BYTES: usize = 24 << 20;
/// How much of the scratch buffer a pass touches.
const TOUCHED_BYTES: usize = 64 << 10;

/// Weights on the device.
pub(crate) struct Model<'a> {
    driver: &'a ByName,
    weights: Vec<u64>,
}

impl<'a> Model<'a> {
    /// Loads the weights.
    #[inline(never)]
    pub(crate) fn load(driver: &'a ByName) -> Result<Self, Error> {
        let mut model = Self {
            driver,
            weights: Vec::new(),
        };
        for bytes in LAYER_BYTES {
            model.load_layer(bytes)?;
        }
        Ok(model)
    }

    #[inline(never)]
    fn load_layer(&mut self, bytes: usize) -> Result<(), Error> {
        let mut address = 0;
        // SAFETY: the answer goes to a local variable.
        check("cuMemAlloc", unsafe {
            (self.driver.allocate)(&mut address, bytes)
        })?;
        self.weights.push(address);
        Ok(())
    }

    /// One pass: takes a scratch buffer and gives it back.
    #[inline(never)]
    pub(crate) fn forward(&self) -> Result<(), Error> {
        let mut scratch = 0;
        // SAFETY: the answer goes to a local variable.
        check("cuMemAlloc", unsafe {
            (self.driver.allocate)(&mut scratch, SCRATCH_BYTES)
        })?;
        // SAFETY: the buffer is longer than what is filled.
        let filled = unsafe { (self.driver.fill)(scratch, 1, TOUCHED_BYTES) };
        // SAFETY: the buffer was just allocated, and is not used any more.
        check("cuMemFree", unsafe { (self.driver.free)(scratch) })?;
        check("cuMemsetD8", filled)
    }

    /// Gives the weights back.
    pub(crate) fn unload(&mut self) -> Result<(), Error> {
        for address in self.weights.drain(..) {
            // SAFETY: a buffer of `load_layer`, which is forgotten here.
            check("cuMemFree", unsafe { (self.driver.free)(address) })?;
        }
        Ok(())
    }
}
