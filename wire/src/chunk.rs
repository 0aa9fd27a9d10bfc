//! Chunks: the unit in which everything crosses a process boundary, on a socket and in a file alike.
//!
//! 44 bytes of header, then the stored payload. A reader that meets a kind it does not know skips the chunk by its length;
//! a file that ends inside a chunk is what a killed writer leaves behind, and all before it counts.

use crate::codec::Codec;
use crate::error::WireError;
use crate::ids::Seq;
use crate::limits;

/// The first bytes of every chunk.
pub const MAGIC: [u8; 4] = *b"GMck";
/// Bytes of an encoded [`ChunkHeader`].
pub const HEADER_BYTES: usize = 44;
/// The first bytes of a capture file, before its first chunk. The last byte is the file layout's version.
pub const CAPTURE_MAGIC: [u8; 8] = *b"gpumem\0\x01";

/// What a chunk's payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChunkKind {
    /// [`crate::Definition`]s, each with its length.
    Definitions,
    /// Events in the order of their numbers, see [`crate::columns`].
    Events,
    /// Reserved: events that are known to be lost.
    Gap,
    /// Reserved: a snapshot of the live table.
    Snapshot,
    /// Reserved: rows per place and step.
    Aggregate,
    /// A command to the shim (snapshot, mark, mode, stop).
    Command,
    /// A kind of a later version.
    Other(u16),
}

impl ChunkKind {
    /// The number in a header.
    pub const fn number(self) -> u16 {
        match self {
            Self::Definitions => 1,
            Self::Events => 2,
            Self::Gap => 3,
            Self::Snapshot => 4,
            Self::Aggregate => 5,
            Self::Command => 6,
            Self::Other(number) => number,
        }
    }

    /// The kind with this number.
    pub const fn from_number(number: u16) -> Self {
        match number {
            1 => Self::Definitions,
            2 => Self::Events,
            3 => Self::Gap,
            4 => Self::Snapshot,
            5 => Self::Aggregate,
            6 => Self::Command,
            other => Self::Other(other),
        }
    }
}

/// A chunk's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkHeader {
    /// What the payload is.
    pub kind: ChunkKind,
    /// How it is stored: a [`Codec`] as a number.
    pub codec: u8,
    /// Bytes of the payload as stored.
    pub stored_bytes: u32,
    /// Bytes of the payload when decompressed.
    pub raw_bytes: u32,
    /// CRC-32 (IEEE) of the stored payload.
    pub checksum: u32,
    /// Which process of the capture it belongs to. 0 on a socket and in a spool file, which have one process.
    pub process: u32,
    /// The first and the last event number in it (both 0 where it holds none).
    pub first: Seq,
    /// See `first`.
    pub last: Seq,
}

impl ChunkHeader {
    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        let mut rest = &mut out[..];
        let mut put = |bytes: &[u8]| {
            let (head, tail) = core::mem::take(&mut rest).split_at_mut(bytes.len());
            head.copy_from_slice(bytes);
            rest = tail;
        };
        put(&MAGIC);
        put(&self.kind.number().to_le_bytes());
        put(&[self.codec, 0]);
        put(&self.stored_bytes.to_le_bytes());
        put(&self.raw_bytes.to_le_bytes());
        put(&self.checksum.to_le_bytes());
        put(&self.process.to_le_bytes());
        put(&self.first.0.to_le_bytes());
        put(&self.last.0.to_le_bytes());
        put(&[0; 4]);
        out
    }

    /// Reads a header from the front of `bytes`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::NotAChunk`], or [`WireError::TooLarge`] for a payload past the limit.
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let Some(header) = bytes.get(..HEADER_BYTES) else {
            let shown = bytes.len().min(4);
            if bytes[..shown] != MAGIC[..shown] {
                let mut found = [0; 4];
                found[..shown].copy_from_slice(&bytes[..shown]);
                return Err(WireError::NotAChunk { found });
            }
            return Err(WireError::Truncated {
                have: bytes.len(),
                need: HEADER_BYTES,
            });
        };
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let u32_at = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        if header[..4] != MAGIC {
            return Err(WireError::NotAChunk {
                found: [header[0], header[1], header[2], header[3]],
            });
        }
        let parsed = Self {
            kind: ChunkKind::from_number(u16_at(4)),
            codec: header[6],
            stored_bytes: u32_at(8),
            raw_bytes: u32_at(12),
            checksum: u32_at(16),
            process: u32_at(20),
            first: Seq(u64_at(24)),
            last: Seq(u64_at(32)),
        };
        let limit = limits::CHUNK_BYTES as u64;
        for got in [parsed.stored_bytes, parsed.raw_bytes] {
            if u64::from(got) > limit {
                return Err(WireError::TooLarge {
                    what: "a chunk's payload",
                    got: got.into(),
                    limit,
                });
            }
        }
        Ok(parsed)
    }
}

/// A chunk, its payload decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// What the payload is.
    pub kind: ChunkKind,
    /// Which process of the capture, see [`ChunkHeader::process`].
    pub process: u32,
    /// The first and the last event number in it.
    pub first: Seq,
    /// See `first`.
    pub last: Seq,
    /// The payload.
    pub payload: Vec<u8>,
}

impl Chunk {
    /// A chunk without events.
    pub fn new(kind: ChunkKind, process: u32, payload: Vec<u8>) -> Self {
        Self {
            kind,
            process,
            first: Seq(0),
            last: Seq(0),
            payload,
        }
    }

    /// Appends header and stored payload to `out`. Where compression does not shorten the payload it is stored raw.
    ///
    /// # Errors
    /// [`WireError::TooLarge`] past [`limits::CHUNK_BYTES`]; [`WireError::Codec`] if the compressor fails.
    pub fn append_to(&self, codec: Codec, out: &mut Vec<u8>) -> Result<(), WireError> {
        if self.payload.len() > limits::CHUNK_BYTES {
            return Err(WireError::TooLarge {
                what: "a chunk's payload",
                got: self.payload.len() as u64,
                limit: limits::CHUNK_BYTES as u64,
            });
        }
        let compressed = codec.compress(&self.payload)?;
        let (codec, stored) = if compressed.len() < self.payload.len() {
            (codec, &compressed)
        } else {
            (Codec::Raw, &self.payload)
        };
        let header = ChunkHeader {
            kind: self.kind,
            codec: codec.number(),
            stored_bytes: stored.len() as u32,
            raw_bytes: self.payload.len() as u32,
            checksum: crc32fast::hash(stored),
            process: self.process,
            first: self.first,
            last: self.last,
        };
        out.extend_from_slice(&header.to_bytes());
        out.extend_from_slice(stored);
        Ok(())
    }

    /// Reads the payload that belongs to `header`.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Damaged`] or [`WireError::Codec`].
    pub fn from_stored(header: &ChunkHeader, stored: &[u8]) -> Result<Self, WireError> {
        let need = header.stored_bytes as usize;
        let stored = stored.get(..need).ok_or(WireError::Truncated {
            have: stored.len(),
            need,
        })?;
        let found = crc32fast::hash(stored);
        if found != header.checksum {
            return Err(WireError::Damaged {
                found,
                expected: header.checksum,
            });
        }
        let payload =
            Codec::from_number(header.codec)?.decompress(stored, header.raw_bytes as usize)?;
        Ok(Self {
            kind: header.kind,
            process: header.process,
            first: header.first,
            last: header.last,
            payload,
        })
    }

    /// Reads one chunk from the front of `bytes` and says how many bytes it took.
    ///
    /// # Errors
    /// As [`ChunkHeader::parse`] and [`Chunk::from_stored`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize), WireError> {
        let header = ChunkHeader::parse(bytes)?;
        let chunk = Self::from_stored(&header, bytes.get(HEADER_BYTES..).unwrap_or(&[]))?;
        Ok((chunk, HEADER_BYTES + header.stored_bytes as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Chunk {
        Chunk {
            kind: ChunkKind::Events,
            process: 7,
            first: Seq(3),
            last: Seq(u64::MAX),
            payload: b"gpumem ".repeat(100),
        }
    }

    fn codecs() -> Vec<Codec> {
        let mut codecs = vec![Codec::Raw, Codec::Lz4];
        if cfg!(feature = "zstd") {
            codecs.push(Codec::Zstd);
        }
        codecs
    }

    #[test]
    fn what_goes_in_comes_out() {
        for codec in codecs() {
            let mut bytes = Vec::new();
            sample().append_to(codec, &mut bytes).unwrap();
            assert_eq!(
                Chunk::parse(&bytes),
                Ok((sample(), bytes.len())),
                "{codec:?}"
            );
        }
    }

    #[test]
    fn a_chunk_cut_anywhere_is_an_error() {
        for codec in codecs() {
            let mut bytes = Vec::new();
            sample().append_to(codec, &mut bytes).unwrap();
            for length in 0..bytes.len() {
                assert!(
                    matches!(
                        Chunk::parse(&bytes[..length]),
                        Err(WireError::Truncated { .. })
                    ),
                    "{codec:?} {length}"
                );
            }
        }
    }

    #[test]
    fn a_changed_payload_is_damaged() {
        let mut bytes = Vec::new();
        sample().append_to(Codec::Raw, &mut bytes).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        assert!(matches!(
            Chunk::parse(&bytes),
            Err(WireError::Damaged { .. })
        ));
    }

    #[test]
    fn something_else_is_not_a_chunk() {
        assert!(matches!(
            Chunk::parse(b"PK"),
            Err(WireError::NotAChunk { .. })
        ));
        assert!(matches!(
            Chunk::parse(&[0x7f; 100]),
            Err(WireError::NotAChunk { .. })
        ));
    }

    #[test]
    fn a_length_past_the_limit_is_refused_before_it_is_used() {
        let mut bytes = Vec::new();
        sample().append_to(Codec::Raw, &mut bytes).unwrap();
        bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(
            Chunk::parse(&bytes),
            Err(WireError::TooLarge { .. })
        ));
    }

    #[test]
    fn an_unknown_kind_keeps_its_number() {
        let chunk = Chunk::new(ChunkKind::from_number(900), 1, vec![1, 2, 3]);
        let mut bytes = Vec::new();
        chunk.append_to(Codec::Lz4, &mut bytes).unwrap();
        assert_eq!(Chunk::parse(&bytes).unwrap().0.kind, ChunkKind::Other(900));
    }
}
