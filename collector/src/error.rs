//! Why a source could not be read or a collector not be started, each with the mend.

use std::io;
use std::path::PathBuf;

use gpumem_wire::WireError;
use thiserror::Error;

/// Everything that can go wrong between a socket or a file and the model.
#[derive(Debug, Error)]
pub enum CollectorError {
    /// The file could not be opened or read.
    #[error("{path}: {error}")]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The file has no bytes, or only a part of the first eight.
    #[error(
        "{path} is empty: its recorder was stopped before it wrote anything. Run the program again, or take another file"
    )]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// The file is something else.
    #[error(
        "{path} is not a gpumem capture (it begins with {found:02x?}). Give a .gpumem file as `gpumem run -o` writes it"
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Its first bytes.
        found: [u8; 8],
    },
    /// The file's layout is of a later version.
    #[error(
        "{path} was written by a later gpumem (capture layout {found}, this one reads {known}). Read it with a newer gpumem"
    )]
    LaterVersion {
        /// Which file.
        path: PathBuf,
        /// Its layout's version.
        found: u8,
        /// The version that this build reads.
        known: u8,
    },
    /// A chunk's bytes are not what was written.
    #[error(
        "{path}: the chunk at byte {offset} is damaged: {error}. What lies before it can be read; copy the file again if it was copied"
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where the chunk begins.
        offset: u64,
        /// What is wrong with it.
        #[source]
        error: WireError,
    },
    /// No capture was found in any of these folders.
    #[error(
        "no session found in {}. Run a program under `gpumem run`, or give a capture file", list(.places)
    )]
    NoSession {
        /// Where was looked.
        places: Vec<PathBuf>,
    },
    /// The file to be written is there already.
    #[error("{path} is there already and is not overwritten. Give another name")]
    Exists {
        /// Which file.
        path: PathBuf,
    },
    /// Somebody listens at the socket already.
    #[error(
        "{} listens at {path} already. Let it record, end it first, or give another socket", holder(.pid)
    )]
    Held {
        /// Which socket.
        path: PathBuf,
        /// Who, if he says so.
        pid: Option<u32>,
    },
    /// The system has no room for so long a path of a socket.
    #[error("{path} is too long for a socket, which may have {most} bytes. Give a shorter one")]
    SocketPath {
        /// Which path.
        path: PathBuf,
        /// Bytes that it may have.
        most: usize,
    },
    /// The socket's folder could be used by others.
    #[error(
        "{path} cannot hold a collector's socket: {why}. Give a folder of your own with mode 0700"
    )]
    UnsafeFolder {
        /// Which folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Encoding failed: a definition or a chunk past its limit.
    #[error("the capture could not be written: {0}. Please report this with the command line")]
    Encode(#[source] WireError),
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(
        || "another collector".into(),
        |pid| format!("process {pid}"),
    )
}

fn list(places: &[PathBuf]) -> String {
    if places.is_empty() {
        return "any of the usual folders (none of them is there)".into();
    }
    let names: Vec<String> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    names.join(", ")
}

impl CollectorError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io { path, error }
    }
}
