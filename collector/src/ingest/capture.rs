//! Capture files: eight bytes of magic, then chunks, of one process (the shim's spool) or of many (the collector's).

use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use gpumem_wire::chunk::{CAPTURE_MAGIC, HEADER_BYTES};
use gpumem_wire::codec::Codec;
use gpumem_wire::{Chunk, ChunkHeader, ChunkKind, Definition, WireError, limits};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::CollectorError;

/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// Reads a capture chunk by chunk; at most one chunk is in memory.
#[derive(Debug)]
pub struct CaptureReader {
    path: PathBuf,
    file: BufReader<File>,
    offset: u64,
    truncated: bool,
    skipped: u64,
}

/// What a reader comes to.
#[derive(Debug)]
pub enum Item {
    /// A chunk.
    Chunk(Chunk),
    /// A chunk whose payload is not what was written. The reader goes on after it.
    Damaged {
        /// What its header says of it.
        header: ChunkHeader,
        /// What is wrong with it.
        error: CollectorError,
    },
}

impl CaptureReader {
    /// Opens a capture.
    ///
    /// # Errors
    /// [`CollectorError::Io`], [`CollectorError::Empty`], [`CollectorError::Foreign`] or [`CollectorError::LaterVersion`].
    pub fn open(path: &Path) -> Result<Self, CollectorError> {
        let file = File::open(path).map_err(CollectorError::io(path))?;
        let mut file = BufReader::with_capacity(BUFFER_BYTES, file);
        let mut found = [0; CAPTURE_MAGIC.len()];
        let have = read_up_to(&mut file, &mut found).map_err(CollectorError::io(path))?;
        let path = path.to_owned();
        let (name, version) = CAPTURE_MAGIC.split_at(CAPTURE_MAGIC.len() - 1);
        if found[..have] == CAPTURE_MAGIC[..have] {
            if have < CAPTURE_MAGIC.len() {
                return Err(CollectorError::Empty { path });
            }
        } else if have == CAPTURE_MAGIC.len() && found.starts_with(name) {
            let (known, found) = (version[0], found[name.len()]);
            return Err(CollectorError::LaterVersion { path, found, known });
        } else {
            return Err(CollectorError::Foreign { path, found });
        }
        Ok(Self {
            path,
            file,
            offset: CAPTURE_MAGIC.len() as u64,
            truncated: false,
            skipped: 0,
        })
    }

    /// The next chunk; `None` at the end, be it in the middle of a chunk (see [`CaptureReader::truncated`]). Chunks of kinds
    /// that this build does not know are skipped and counted.
    ///
    /// # Errors
    /// [`CollectorError::Io`]; [`CollectorError::Damaged`] where no chunk begins at the place where one must. Nothing can be
    /// read after either.
    pub fn read_next(&mut self) -> Result<Option<Item>, CollectorError> {
        loop {
            let start = self.offset;
            let Some((header, stored)) = self.read_stored(|_| true)? else {
                return Ok(None);
            };
            if let ChunkKind::Other(_) = header.kind {
                self.skipped += 1;
                continue;
            }
            return Ok(Some(match Chunk::from_stored(&header, &stored) {
                Ok(chunk) => Item::Chunk(chunk),
                Err(error) => Item::Damaged {
                    header,
                    error: self.damaged(start, error),
                },
            }));
        }
    }

    /// The next chunk of a kind that is wanted, as it is stored: neither checked nor decompressed. The others are stepped over.
    ///
    /// # Errors
    /// As [`CaptureReader::read_next`].
    pub(super) fn read_stored(
        &mut self,
        wanted: impl Fn(ChunkKind) -> bool,
    ) -> Result<Option<(ChunkHeader, Vec<u8>)>, CollectorError> {
        loop {
            let start = self.offset;
            let mut bytes = [0; HEADER_BYTES];
            let have = self.read(&mut bytes)?;
            if have == 0 {
                return Ok(None);
            }
            let header = match ChunkHeader::parse(&bytes[..have]) {
                Ok(header) => header,
                Err(WireError::Truncated { .. }) => {
                    self.truncated = true;
                    return Ok(None);
                }
                Err(error) => return Err(self.damaged(start, error)),
            };
            if !wanted(header.kind) {
                self.file
                    .seek_relative(i64::from(header.stored_bytes))
                    .map_err(CollectorError::io(&self.path))?;
                self.offset += u64::from(header.stored_bytes);
                continue;
            }
            let mut stored = vec![0; header.stored_bytes as usize];
            if self.read(&mut stored)? < stored.len() {
                self.truncated = true;
                return Ok(None);
            }
            return Ok(Some((header, stored)));
        }
    }

    /// Whether the file ends in the middle of a chunk, as one does whose writer was killed. Known at the end.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// How many chunks were skipped because a later version wrote them.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn damaged(&self, offset: u64, error: WireError) -> CollectorError {
        CollectorError::Damaged {
            path: self.path.clone(),
            offset,
            error,
        }
    }

    fn read(&mut self, out: &mut [u8]) -> Result<usize, CollectorError> {
        let have = read_up_to(&mut self.file, out)
            .map_err(|error| CollectorError::io(&self.path)(error))?;
        self.offset += have as u64;
        Ok(have)
    }
}

/// Whether somebody holds a capture's lock: he writes to it.
pub(super) fn is_being_written(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    })
}

/// Reads until `out` is full or the input ends.
pub(crate) fn read_up_to(input: &mut impl Read, out: &mut [u8]) -> std::io::Result<usize> {
    let mut have = 0;
    while have < out.len() {
        match input.read(&mut out[have..]) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}

/// Writes a capture of many processes, whole chunks at a time: whoever reads it meanwhile, or after the writer was killed, finds
/// all that came before. As long as it writes it holds an advisory lock (`flock`), as the shim does on its spool: nobody else
/// adds to the file.
#[derive(Debug)]
pub struct CaptureWriter {
    path: PathBuf,
    file: File,
    written_bytes: u64,
    buffer: Vec<u8>,
}

impl CaptureWriter {
    /// Makes the file, readable by its owner alone.
    ///
    /// # Errors
    /// [`CollectorError::Exists`] where the name is taken; [`CollectorError::Io`].
    pub fn create(path: &Path) -> Result<Self, CollectorError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => CollectorError::Exists { path: path.into() },
                _ => CollectorError::io(path)(error),
            })?;
        // A file system without locks is no reason not to record: readers then go by whether the processes live.
        let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
        let mut writer = Self::around(path, file);
        writer
            .file
            .write_all(&CAPTURE_MAGIC)
            .map_err(CollectorError::io(path))?;
        Ok(writer)
    }

    /// Opens a capture that is there, to add to its end. `None`: somebody writes to it, or that cannot be ruled out, or it is
    /// not as long any more as it was when it was read.
    ///
    /// # Errors
    /// [`CollectorError::Io`].
    pub fn append(path: &Path, read_bytes: u64) -> Result<Option<Self>, CollectorError> {
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(CollectorError::io(path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let now_bytes = file.metadata().map_err(CollectorError::io(path))?.len();
        Ok((now_bytes == read_bytes).then(|| Self::around(path, file)))
    }

    fn around(path: &Path, file: File) -> Self {
        Self {
            path: path.to_owned(),
            file,
            written_bytes: 0,
            buffer: Vec::new(),
        }
    }

    /// Appends a chunk, recompressed. Its `process` is the index of its process in this capture.
    ///
    /// # Errors
    /// [`CollectorError::Io`] or [`CollectorError::Encode`].
    pub fn chunk(&mut self, chunk: &Chunk) -> Result<(), CollectorError> {
        let mut bytes = core::mem::take(&mut self.buffer);
        bytes.clear();
        chunk
            .append_to(Codec::Zstd, &mut bytes)
            .map_err(CollectorError::Encode)?;
        let result = self
            .file
            .write_all(&bytes)
            .map_err(|error| CollectorError::io(&self.path)(error));
        self.written_bytes += bytes.len() as u64;
        self.buffer = bytes;
        result
    }

    /// Appends definitions of one process, in as many chunks as they need. One past the limit of a definition is left out.
    ///
    /// # Errors
    /// [`CollectorError::Io`] or [`CollectorError::Encode`].
    pub fn definitions(
        &mut self,
        process: u32,
        definitions: &[Definition],
    ) -> Result<(), CollectorError> {
        let mut payload = Vec::new();
        for definition in definitions {
            let before = payload.len();
            definition
                .append_to(&mut payload)
                .map_err(CollectorError::Encode)?;
            if payload.len() - before > limits::DEFINITION_BYTES {
                payload.truncate(before);
            }
            if payload.len() > limits::CHUNK_BYTES / 4 {
                let full = core::mem::take(&mut payload);
                self.chunk(&Chunk::new(ChunkKind::Definitions, process, full))?;
            }
        }
        if payload.is_empty() {
            return Ok(());
        }
        self.chunk(&Chunk::new(ChunkKind::Definitions, process, payload))
    }

    /// Closes the file and gives its path.
    pub fn finish(self) -> PathBuf {
        self.path
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of chunks written so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn chunks() -> Vec<Chunk> {
        let long = b"gpumem ".repeat(500);
        vec![
            Chunk::new(ChunkKind::Definitions, 1, long.clone()),
            Chunk::new(ChunkKind::Other(900), 1, long.clone()),
            Chunk::new(ChunkKind::Events, 2, long),
        ]
    }

    fn written() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.gpumem");
        let mut writer = CaptureWriter::create(&path).expect("a new file");
        for chunk in chunks() {
            writer.chunk(&chunk).expect("a chunk");
        }
        writer.finish();
        (folder, path)
    }

    fn read(path: &Path) -> (Vec<Chunk>, CaptureReader) {
        let mut reader = CaptureReader::open(path).expect("a capture");
        let mut read = Vec::new();
        while let Some(Item::Chunk(chunk)) = reader.read_next().expect("a chunk") {
            read.push(chunk);
        }
        (read, reader)
    }

    #[test]
    fn what_is_written_is_read_and_unknown_kinds_are_skipped() {
        let (_folder, path) = written();
        let (read, reader) = read(&path);
        let mut known = chunks();
        known.remove(1);
        assert_eq!(read, known);
        assert_eq!((reader.skipped(), reader.truncated()), (1, false));
    }

    #[test]
    fn a_file_cut_at_any_byte_keeps_what_came_before() {
        let (_folder, path) = written();
        let whole = fs::read(&path).expect("the file");
        let mut ends = vec![CAPTURE_MAGIC.len()];
        for chunk in chunks() {
            let mut bytes = Vec::new();
            chunk.append_to(Codec::Zstd, &mut bytes).expect("a chunk");
            ends.push(ends.last().unwrap_or(&0) + bytes.len());
        }
        for length in 0..whole.len() {
            fs::write(&path, &whole[..length]).expect("the file");
            if length < CAPTURE_MAGIC.len() {
                let error = CaptureReader::open(&path).expect_err("no capture");
                assert!(matches!(error, CollectorError::Empty { .. }), "{length}");
                continue;
            }
            let (read, reader) = read(&path);
            let complete = ends[1..].iter().filter(|&&end| end <= length).count();
            assert_eq!(read.len() + reader.skipped() as usize, complete, "{length}");
            assert_eq!(reader.truncated(), !ends.contains(&length), "{length}");
        }
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |bytes: &[u8]| {
            let path = folder.path().join("x");
            fs::write(&path, bytes).expect("the file");
            CaptureReader::open(&path).expect_err("no capture")
        };
        assert!(matches!(
            open(b"\x7fELF\x02\x01\x01\0\0"),
            CollectorError::Foreign { .. }
        ));
        assert!(matches!(open(b"x"), CollectorError::Foreign { .. }));
        let later = open(b"gpumem\0\x07rest");
        assert!(matches!(
            later,
            CollectorError::LaterVersion {
                found: 7,
                known: 1,
                ..
            }
        ));
        assert!(later.to_string().contains("newer gpumem"), "{later}");
        let missing = CaptureReader::open(&folder.path().join("none")).expect_err("no file");
        assert!(missing.to_string().contains("none"), "{missing}");
    }

    #[test]
    fn a_damaged_chunk_costs_itself_and_a_lost_thread_the_rest() {
        let (_folder, path) = written();
        let mut bytes = fs::read(&path).expect("the file");
        let first_payload = CAPTURE_MAGIC.len() + HEADER_BYTES;
        bytes[first_payload] ^= 1;
        fs::write(&path, &bytes).expect("the file");
        let mut reader = CaptureReader::open(&path).expect("a capture");
        let damaged = reader.read_next().expect("an item");
        assert!(
            matches!(
                damaged,
                Some(Item::Damaged {
                    error: CollectorError::Damaged { offset: 8, .. },
                    ..
                })
            ),
            "{damaged:?}"
        );
        assert!(matches!(reader.read_next(), Ok(Some(Item::Chunk(_)))));
        bytes[CAPTURE_MAGIC.len()] ^= 1;
        fs::write(&path, &bytes).expect("the file");
        let mut reader = CaptureReader::open(&path).expect("a capture");
        assert!(matches!(
            reader.read_next(),
            Err(CollectorError::Damaged { .. })
        ));
    }

    #[test]
    fn nothing_is_overwritten() {
        let (_folder, path) = written();
        let before = fs::read(&path).expect("the file");
        assert!(matches!(
            CaptureWriter::create(&path),
            Err(CollectorError::Exists { .. })
        ));
        assert_eq!(fs::read(&path).expect("the file"), before);
    }

    #[test]
    fn what_is_appended_later_is_read_too() {
        let (_folder, path) = written();
        let bytes = fs::metadata(&path).expect("the file").len();
        let append = |bytes| CaptureWriter::append(&path, bytes).expect("the file");
        assert!(append(bytes - 1).is_none());
        let mut writer = append(bytes).expect("nobody writes");
        assert!(append(bytes).is_none());
        assert!(is_being_written(&path));
        let notice = Definition::Notice {
            text: "later".into(),
        };
        writer.definitions(3, &[notice]).expect("a definition");
        writer.finish();
        assert!(!is_being_written(&path));
        assert_eq!(read(&path).0.last().map(|chunk| chunk.process), Some(3));
    }
}
