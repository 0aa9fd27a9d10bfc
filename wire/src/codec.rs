//! bincode and the compressors behind one door, so that either can be replaced here alone.
//!
//! bincode is used with fixed-width little-endian integers: a kind's layout is what its declaration says.

use bincode::config::{Configuration, Fixint, Limit, LittleEndian};
use bincode::{Decode, Encode};

use crate::error::WireError;
use crate::limits;

const CONFIG: Configuration<LittleEndian, Fixint, Limit<{ limits::CHUNK_BYTES }>> =
    bincode::config::standard()
        .with_little_endian()
        .with_fixed_int_encoding()
        .with_limit::<{ limits::CHUNK_BYTES }>();

/// Encodes into a buffer that is there, without allocating, and gives the bytes written.
///
/// # Errors
/// [`WireError::Truncated`] where the buffer is too small.
pub fn encode_into<T: Encode>(value: &T, out: &mut [u8]) -> Result<usize, WireError> {
    let have = out.len();
    bincode::encode_into_slice(value, out, CONFIG).map_err(|_| WireError::Truncated {
        have,
        need: have + 1,
    })
}

/// Encodes to a vector.
///
/// # Errors
/// [`WireError::Malformed`] if the encoder refuses the value.
pub fn encode<T: Encode>(value: &T) -> Result<Vec<u8>, WireError> {
    bincode::encode_to_vec(value, CONFIG).map_err(|error| WireError::Malformed(error.to_string()))
}

/// Decodes one value from the front of `bytes`.
///
/// # Errors
/// [`WireError::Malformed`] if the bytes are not such a value or claim to be longer than the limits.
pub fn decode<T: Decode<()>>(bytes: &[u8]) -> Result<T, WireError> {
    Ok(decode_front(bytes)?.0)
}

/// Decodes one value from the front of `bytes` and says how many bytes it took.
///
/// # Errors
/// As [`decode`].
pub fn decode_front<T: Decode<()>>(bytes: &[u8]) -> Result<(T, usize), WireError> {
    bincode::decode_from_slice(bytes, CONFIG)
        .map_err(|error| WireError::Malformed(error.to_string()))
}

/// How a chunk's payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// As it is.
    Raw,
    /// LZ4 block: what the shim writes.
    Lz4,
    /// Zstandard frame: what the collector writes.
    Zstd,
}

impl Codec {
    /// The number in a chunk's header.
    pub const fn number(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Lz4 => 1,
            Self::Zstd => 2,
        }
    }

    /// The codec with this number.
    ///
    /// # Errors
    /// [`WireError::Codec`] for a number that this build does not know.
    pub fn from_number(number: u8) -> Result<Self, WireError> {
        match number {
            0 => Ok(Self::Raw),
            1 => Ok(Self::Lz4),
            2 => Ok(Self::Zstd),
            _ => Err(WireError::Codec(format!(
                "codec {number} is of a later version"
            ))),
        }
    }

    /// Compresses.
    ///
    /// # Errors
    /// [`WireError::Codec`] if the compressor fails or is not in this build.
    pub fn compress(self, raw: &[u8]) -> Result<Vec<u8>, WireError> {
        match self {
            Self::Raw => Ok(raw.to_vec()),
            Self::Lz4 => Ok(lz4_flex::block::compress(raw)),
            #[cfg(feature = "zstd")]
            Self::Zstd => {
                zstd::bulk::compress(raw, 3).map_err(|error| WireError::Codec(error.to_string()))
            }
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => Err(WireError::Codec("zstd is not in this build".into())),
        }
    }

    /// Decompresses to exactly `raw_length` bytes.
    ///
    /// # Errors
    /// [`WireError::Codec`] if the bytes are not such a block or of another length; [`WireError::TooLarge`] past the limit.
    pub fn decompress(self, stored: &[u8], raw_length: usize) -> Result<Vec<u8>, WireError> {
        if raw_length > limits::CHUNK_BYTES {
            return Err(WireError::TooLarge {
                what: "a chunk's payload",
                got: raw_length as u64,
                limit: limits::CHUNK_BYTES as u64,
            });
        }
        let raw = match self {
            Self::Raw => stored.to_vec(),
            Self::Lz4 => lz4_flex::block::decompress(stored, raw_length)
                .map_err(|error| WireError::Codec(error.to_string()))?,
            #[cfg(feature = "zstd")]
            Self::Zstd => zstd::bulk::decompress(stored, raw_length)
                .map_err(|error| WireError::Codec(error.to_string()))?,
            #[cfg(not(feature = "zstd"))]
            Self::Zstd => return Err(WireError::Codec("zstd is not in this build".into())),
        };
        if raw.len() == raw_length {
            Ok(raw)
        } else {
            Err(WireError::Codec(format!(
                "{} bytes came out where {raw_length} were announced",
                raw.len()
            )))
        }
    }
}
