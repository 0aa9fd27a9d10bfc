//! Why bytes could not be read.

use thiserror::Error;

/// Every way in which bytes from a socket or a file can be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// The input ends inside a chunk or a record. Normal for a file whose writer was killed.
    #[error("the data ends in the middle of a record ({have} of {need} bytes)")]
    Truncated {
        /// Bytes that are there.
        have: usize,
        /// Bytes that the record needs.
        need: usize,
    },
    /// The input does not begin with a chunk.
    #[error("not gpumem data (it begins with {found:02x?})")]
    NotAChunk {
        /// The first bytes found.
        found: [u8; 4],
    },
    /// A length is over its limit.
    #[error("{what} of {got} is over the limit of {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// The value that the input gives.
        got: u64,
        /// The limit, from [`crate::limits`].
        limit: u64,
    },
    /// The checksum does not match the bytes.
    #[error("a chunk is damaged (checksum {found:08x}, expected {expected:08x})")]
    Damaged {
        /// The checksum of the bytes as they are.
        found: u32,
        /// The checksum that the header gives.
        expected: u32,
    },
    /// A compressor this build does not know, or bytes that it refuses.
    #[error("a chunk cannot be decompressed: {0}")]
    Codec(String),
    /// A record does not have the layout of its kind.
    #[error("a record is malformed: {0}")]
    Malformed(String),
}
