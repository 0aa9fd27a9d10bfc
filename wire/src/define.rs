//! Definitions: what the small numbers in an event stand for.
//!
//! A definition is sent before the first event that uses it. The shim encodes from borrowed parts into a buffer that is
//! already there (`Definition<&str, &[Frame]>`), since a hook must not allocate; a reader decodes to owned ones. One
//! declaration serves both, so the two layouts are the same by construction.

use bincode::{Decode, Encode};

use crate::codec;
use crate::error::WireError;
use crate::ids::{CodeId, ModuleId, StackId, ThreadId};
use crate::limits;

/// What a number stands for. `S` is a string, `F` a list of frames.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Definition<S = String, F = Vec<Frame>> {
    /// The process itself; the first definition of a stream.
    Process(ProcessDefinition),
    /// An entry point.
    Api {
        /// As in [`crate::Event::api`].
        id: u16,
        /// The exported symbol, such as `cuMemAlloc_v2`.
        name: S,
    },
    /// A thread.
    Thread {
        /// As in [`crate::Event::thread`].
        id: ThreadId,
        /// The kernel's id of the thread.
        tid: u32,
        /// The kernel's name of the thread.
        name: S,
    },
    /// A device.
    Device(DeviceDefinition<S>),
    /// A mapped ELF object.
    Module(ModuleDefinition<S>),
    /// A Python code object.
    Code(CodeDefinition<S>),
    /// A stack.
    Stack(StackDefinition<F>),
    /// A named mark.
    Mark {
        /// As in the words of [`crate::Kind::Mark`].
        id: u32,
        /// The name.
        name: S,
    },
    /// Whether Python frames can be read in this process.
    Python(PythonStatus),
    /// A native frame's name, found by a collector and kept for readers on other machines.
    Symbol(SymbolDefinition),
    /// The text of a source line, read by a collector.
    Source {
        /// The file as the frames name it.
        file: S,
        /// The line, from 1.
        line: u32,
        /// Its text, without the line's end.
        text: S,
    },
    /// How the process ended, as far as it is known.
    End(EndDefinition),
    /// Something in the shim gave up, in words for a person.
    Notice {
        /// One sentence.
        text: S,
    },
}

/// Who a process is. Two processes are the same exactly if all of host, boot, pid namespace, pid, start and nonce are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ProcessDefinition {
    /// The host's name.
    pub host: String,
    /// The kernel's boot id.
    pub boot_id: String,
    /// The inode of the pid namespace.
    pub pid_namespace: u64,
    /// The process id, as the process sees it.
    pub pid: u32,
    /// The parent's process id.
    pub parent: u32,
    /// The process group.
    pub group: u32,
    /// When the process started, in clock ticks since boot (field 22 of `/proc/self/stat`).
    pub start_ticks: u64,
    /// A random number, new after each fork and exec.
    pub nonce: u64,
    /// The user.
    pub uid: u32,
    /// The program's path.
    pub executable: String,
    /// The command line, with secrets masked.
    pub command: Vec<String>,
    /// The working directory: relative paths in frames start there.
    pub directory: String,
    /// Variables that say what the process is to its job (RANK, SLURM_JOB_ID, PYTORCH_ALLOC_CONF, ...). Never all of them.
    pub environment: Vec<(String, String)>,
    /// When the shim woke, in nanoseconds since the epoch.
    pub started_ns: u64,
    /// The shim's version.
    pub shim_version: String,
}

/// Which device it is. Empty strings and -1 where the driver gave no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct DeviceDefinition<S = String> {
    /// The ordinal in this process.
    pub ordinal: i16,
    /// `GPU-...` or `MIG-...`.
    pub uuid: S,
    /// The product's name.
    pub name: S,
    /// Bytes of memory, 0 where unknown.
    pub total_bytes: u64,
}

/// An ELF object that was mapped when a stack went through it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct ModuleDefinition<S = String> {
    /// The number frames use.
    pub id: ModuleId,
    /// The path as the dynamic loader has it; the executable's own path for the main program.
    pub path: S,
    /// The address where it starts in the target.
    pub start: u64,
    /// Its GNU build id.
    pub build_id: BuildId,
}

/// A GNU build id of at most 32 bytes; empty where the object has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Encode, Decode)]
pub struct BuildId {
    /// How many of `bytes` count.
    pub length: u8,
    /// The id, then zeros.
    pub bytes: [u8; 32],
}

impl BuildId {
    /// The id's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or(&[])
    }
}

/// A Python code object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct CodeDefinition<S = String> {
    /// The number frames use.
    pub id: CodeId,
    /// The qualified name (`Trainer.step`).
    pub function: S,
    /// `co_filename`.
    pub file: S,
    /// `co_firstlineno`.
    pub first_line: u32,
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct StackDefinition<F = Vec<Frame>> {
    /// The number events use.
    pub id: StackId,
    /// Frames that were left out of the middle because the stack was deeper than the limit.
    pub left_out: u32,
    /// The frames.
    pub frames: F,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Frame {
    /// Machine code: the ELF virtual address (not a file offset) of the return address in its module. The call itself lies
    /// at least one byte before it.
    Native {
        /// In which module.
        module: ModuleId,
        /// The return address less the module's load bias.
        address: u64,
    },
    /// Machine code in no known module (generated code). The address is the target's own.
    Unknown {
        /// The return address.
        address: u64,
    },
    /// A Python frame.
    Python {
        /// Which code object.
        code: CodeId,
        /// The line that was being executed, 0 where it is not known.
        line: u32,
    },
    /// Here frames were left out.
    Elided,
}

/// Whether Python frames can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum PythonStatus {
    /// No interpreter in this process, so far.
    Absent,
    /// Frames are read.
    Supported {
        /// 3.
        major: u8,
        /// For 3.12: 12.
        minor: u8,
    },
    /// An interpreter whose layout is not known: native frames alone.
    Unsupported {
        /// 3.
        major: u8,
        /// For 3.12: 12.
        minor: u8,
    },
    /// The layout should be known, but a check of it failed (a debug build, say): native frames alone.
    Mismatch {
        /// 3.
        major: u8,
        /// For 3.12: 12.
        minor: u8,
    },
}

/// The name of a native frame. One address may stand for several source functions, inlined into each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SymbolDefinition {
    /// In which module.
    pub module: ModuleId,
    /// As in [`Frame::Native`].
    pub address: u64,
    /// The functions at this address, innermost (most inlined) first. Empty: looked up, nothing found.
    pub functions: Vec<SymbolFunction>,
}

/// One source function of a native frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct SymbolFunction {
    /// The demangled name.
    pub function: String,
    /// The source file, empty where unknown.
    pub file: String,
    /// The line, 0 where unknown.
    pub line: u32,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct EndDefinition {
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// Whether the shim said goodbye (its exit handler ran). Otherwise the process was killed or left by `_exit`.
    pub orderly: bool,
    /// Events that the shim could not record, by its own count at the end.
    pub lost_events: u64,
}

/// One moment in three clocks. With two anchors, ticks become nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Anchor {
    /// The clock of [`crate::Event::time`].
    pub ticks: u64,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// `CLOCK_REALTIME`, in nanoseconds since the epoch.
    pub realtime_ns: u64,
}

/// A definition as the shim encodes it.
pub type BorrowedDefinition<'a> = Definition<&'a str, &'a [Frame]>;

impl<S: Encode, F: Encode> Definition<S, F> {
    /// Encodes into `out` without allocating: a length (u32) and the record. Gives the number of bytes written.
    ///
    /// # Errors
    /// [`WireError::Truncated`] where `out` is too small; then nothing useful was written.
    pub fn encode_into(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let have = out.len();
        let too_small = WireError::Truncated {
            have,
            need: have + 1,
        };
        let (length, body) = out.split_at_mut_checked(4).ok_or(too_small)?;
        let written = codec::encode_into(self, body)?;
        length.copy_from_slice(&(written as u32).to_le_bytes());
        Ok(written + 4)
    }

    /// Appends the same bytes to `out`.
    ///
    /// # Errors
    /// [`WireError::Malformed`] if the encoder refuses the value.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let body = codec::encode(self)?;
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&body);
        Ok(())
    }
}

/// Reads the definitions of one chunk's payload, one after the other. A record that is malformed or of a later version is
/// given as an error and skipped; one that claims to be longer than the payload ends the reading.
pub fn read_all(mut payload: &[u8]) -> impl Iterator<Item = Result<Definition, WireError>> + '_ {
    core::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let (length, rest) = match payload.split_at_checked(4) {
            Some((length, rest)) => (
                u32::from_le_bytes(length.try_into().unwrap_or_default()) as usize,
                rest,
            ),
            None => {
                let have = payload.len();
                payload = &[];
                return Some(Err(WireError::Truncated { have, need: 4 }));
            }
        };
        let Some((body, rest)) = rest.split_at_checked(length) else {
            let have = rest.len();
            payload = &[];
            return Some(Err(WireError::Truncated { have, need: length }));
        };
        payload = rest;
        if length > limits::DEFINITION_BYTES {
            let (got, limit) = (length as u64, limits::DEFINITION_BYTES as u64);
            return Some(Err(WireError::TooLarge {
                what: "a definition",
                got,
                limit,
            }));
        }
        Some(codec::decode(body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borrowed_and_owned_definitions_have_one_layout() {
        let frames = [
            Frame::Native {
                module: ModuleId(3),
                address: 0x1234,
            },
            Frame::Python {
                code: CodeId(7),
                line: 31,
            },
            Frame::Elided,
        ];
        let borrowed: BorrowedDefinition<'_> = Definition::Stack(StackDefinition {
            id: StackId(9),
            left_out: 2,
            frames: &frames,
        });
        let owned: Definition = Definition::Stack(StackDefinition {
            id: StackId(9),
            left_out: 2,
            frames: frames.to_vec(),
        });
        let mut buffer = [0u8; 512];
        let length = borrowed.encode_into(&mut buffer).unwrap();
        let mut appended = Vec::new();
        owned.append_to(&mut appended).unwrap();
        assert_eq!(&buffer[..length], &appended[..]);
        assert_eq!(
            read_all(&appended).collect::<Result<Vec<_>, _>>().unwrap(),
            vec![owned]
        );
    }

    #[test]
    fn a_bad_record_does_not_hide_the_next() {
        let mut payload = vec![3, 0, 0, 0, 0xff, 0xff, 0xff];
        Definition::<String>::Notice {
            text: "fine".into(),
        }
        .append_to(&mut payload)
        .unwrap();
        let read: Vec<_> = read_all(&payload).collect();
        assert!(read[0].is_err());
        assert_eq!(
            read[1],
            Ok(Definition::Notice {
                text: "fine".into()
            })
        );
        assert_eq!(read.len(), 2);
    }

    #[test]
    fn a_record_past_the_limit_does_not_hide_the_next() {
        let length = limits::DEFINITION_BYTES + 1;
        let mut payload = (length as u32).to_le_bytes().to_vec();
        payload.resize(4 + length, 0);
        let next = Definition::<String>::Notice {
            text: "fine".into(),
        };
        next.append_to(&mut payload).unwrap();
        let read: Vec<_> = read_all(&payload).collect();
        assert!(matches!(read[0], Err(WireError::TooLarge { .. })));
        assert_eq!(
            read[1..],
            [Ok(Definition::Notice {
                text: "fine".into()
            })]
        );
    }

    #[test]
    fn a_length_beyond_the_payload_ends_the_reading() {
        let read: Vec<_> = read_all(&[255, 255, 0, 0, 1]).collect();
        assert_eq!(read.len(), 1);
        assert!(read[0].is_err());
    }

    #[test]
    fn a_buffer_that_is_too_small_is_an_error() {
        let definition: BorrowedDefinition<'_> = Definition::Notice {
            text: "a longer text than the buffer",
        };
        for size in 0..20 {
            assert!(
                definition.encode_into(&mut vec![0; size]).is_err(),
                "{size}"
            );
        }
    }
}
