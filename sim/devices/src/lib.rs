//! The devices that can be simulated.
//!
//! [`DEVICES`] is the table, [`find`] looks a device up by what a person would
//! call it, and [`matching`] says what he may have meant when that names none or
//! several. What decides a dry run is [`Device::memory_bytes`]; the table says
//! for each device how well that is known.

#![forbid(unsafe_code)]

mod name;
mod table;

pub use name::{find, matching};
pub use table::DEVICES;

/// A device's figures, as the driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What it is called in settings: lower-case words with `-` between them.
    pub key: &'static str,
    /// What the driver calls it.
    pub name: &'static str,
    /// All of its memory that a program can see (`cudaMemGetInfo`'s total). That
    /// is less than what it is sold with: the driver keeps some, and error
    /// correction takes its share on some devices.
    pub memory_bytes: u64,
    /// How far `memory_bytes` may be from what another driver or board reports.
    pub memory_within_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Level 2 cache.
    pub l2_bytes: u64,
    /// Highest clock of the multiprocessors, in kHz.
    pub clock_khz: u32,
    /// Highest clock of the memory, in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory's bus.
    pub bus_bits: u32,
    /// Errors in memory are corrected, as the device is delivered.
    pub ecc: bool,
    /// What a context takes once PyTorch has started in it.
    pub context_bytes: u64,
    /// `context_bytes` was measured; else it is an estimate from the H200's.
    pub context_measured: bool,
}

/// What the compute capability decides. Sizes and counts are of one
/// multiprocessor, and from the table of technical specifications in NVIDIA's
/// CUDA C++ Programming Guide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads that it holds.
    pub threads: u32,
    /// Blocks that it holds.
    pub blocks: u32,
    /// Its shared memory.
    pub shared_bytes: u32,
    /// Shared memory that a block can opt into.
    pub shared_of_block_bytes: u32,
    /// Shared memory of each block that the system keeps.
    pub reserved_of_block_bytes: u32,
}

/// The limits of a compute capability; one that is not known has those of the
/// nearest known one below it.
pub const fn limits((major, minor): (u32, u32)) -> Limits {
    let (threads, blocks, shared, of_block) = match (major, minor) {
        (0..=6, _) => (2048, 32, 64, 48),
        (7, 0..=4) => (2048, 32, 96, 96),
        (7, _) => (1024, 16, 64, 64),
        (8, 0..=5) => (2048, 32, 164, 163),
        (8, 6..=8) => (1536, 16, 100, 99),
        (8, _) => (1536, 24, 100, 99),
        (9..=11, _) => (2048, 32, 228, 227),
        _ => (1536, 24, 100, 99),
    };
    Limits {
        threads,
        blocks,
        shared_bytes: shared << 10,
        shared_of_block_bytes: of_block << 10,
        reserved_of_block_bytes: if major >= 8 { 1 << 10 } else { 0 },
    }
}

impl Device {
    /// What its compute capability decides.
    pub const fn limits(&self) -> Limits {
        limits(self.compute)
    }
}
