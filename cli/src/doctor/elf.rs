//! The head of an ELF file: for which machine it is, and which dynamic loader starts it.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef, elf};

/// A machine and how many bits its addresses have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Architecture {
    machine: elf::Machine,
    bits: u8,
}

impl Architecture {
    /// The one that this gpumem, and so its shim, was built for.
    pub(super) const OURS: Self = Self {
        machine: if cfg!(target_arch = "aarch64") {
            elf::EM_AARCH64
        } else {
            elf::EM_X86_64
        },
        bits: 64,
    };
}

impl fmt::Display for Architecture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.machine {
            elf::EM_X86_64 if self.bits == 64 => "x86-64",
            elf::EM_X86_64 => "x32",
            elf::EM_386 => "32-bit x86",
            elf::EM_AARCH64 => "aarch64",
            elf::EM_ARM => "32-bit ARM",
            elf::EM_PPC64 => "ppc64",
            elf::EM_RISCV => "RISC-V",
            elf::Machine(number) => {
                return write!(out, "machine {number} with {} bits", self.bits);
            }
        };
        out.write_str(name)
    }
}

/// What a file's head says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// For which machine it is.
    pub(super) architecture: Architecture,
    /// The dynamic loader that starts it (`PT_INTERP`); `None` in a static program and in most libraries.
    pub(super) interpreter: Option<PathBuf>,
    /// Libraries that the file itself names (`DT_NEEDED`).
    pub(super) needed: Vec<String>,
}

impl Head {
    /// Reads it; `None` if the file is no ELF file. Of a file for another machine the architecture alone is read.
    ///
    /// # Errors
    /// If the file cannot be read, or is cut off or damaged.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let cache = ReadCache::new(File::open(path)?);
        let magic: Result<&[u8], ()> = (&cache).read_bytes_at(0, 5);
        let head = match magic {
            Ok([0x7f, b'E', b'L', b'F', 1]) => {
                architecture::<elf::FileHeader32<Endianness>>(&cache)
            }
            Ok([0x7f, b'E', b'L', b'F', _]) => {
                match architecture::<elf::FileHeader64<Endianness>>(&cache) {
                    Ok(head) if head.architecture == Architecture::OURS => whole(&cache),
                    other => other,
                }
            }
            _ => return Ok(None),
        };
        head.map(Some)
            .map_err(|error| anyhow!("it is a damaged ELF file ({error})"))
    }
}

fn architecture<'data, Elf: FileHeader<Endian = Endianness>>(
    data: impl ReadRef<'data>,
) -> object::Result<Head> {
    let header = Elf::parse(data)?;
    Ok(Head {
        architecture: Architecture {
            machine: header.e_machine(header.endian()?),
            bits: if header.is_type_64() { 64 } else { 32 },
        },
        interpreter: None,
        needed: Vec::new(),
    })
}

fn whole<'data, R: ReadRef<'data>>(data: R) -> object::Result<Head> {
    // The sections may be stripped or damaged: the loader does not need them, and neither may we for what it reads.
    let mut head = architecture::<elf::FileHeader64<Endianness>>(data)?;
    let header = elf::FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    for segment in header.program_headers(endian, data)? {
        if let Some(path) = segment.interpreter(endian, data)? {
            head.interpreter = Some(PathBuf::from(OsString::from_vec(path.to_vec())));
        }
    }
    head.needed = needed(data).unwrap_or_default();
    Ok(head)
}

fn needed<'data, R: ReadRef<'data>>(data: R) -> object::Result<Vec<String>> {
    let file = ElfFile64::<Endianness, R>::parse(data)?;
    let (endian, table) = (file.endian(), file.elf_dynamic_table()?);
    let mut names = Vec::new();
    for entry in table.dynamics() {
        if entry.tag(endian) == elf::DT_NEEDED {
            let name = entry.string(endian, *table.strings())?;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn this_test_is_a_dynamic_program() {
        let head = Head::read(Path::new("/proc/self/exe")).unwrap().unwrap();
        assert_eq!(head.architecture, Architecture::OURS);
        assert!(head.interpreter.unwrap().to_string_lossy().contains("ld-"));
        assert!(head.needed.iter().any(|name| name.starts_with("libc.so")));
    }

    #[test]
    fn what_is_no_whole_elf_file_is_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for (bytes, said) in [
            (&b""[..], "none"),
            (b"#!/bin/sh\n", "none"),
            (b"\x7fELF\x02\x01\x01", "damaged"),
        ] {
            fs::write(&path, bytes).unwrap();
            let read = match Head::read(&path) {
                Ok(None) => "none",
                Ok(Some(_)) => "read",
                Err(_) => "damaged",
            };
            assert_eq!(read, said, "{bytes:?}");
        }
        assert!(Head::read(&folder.path().join("absent")).is_err());
    }
}
