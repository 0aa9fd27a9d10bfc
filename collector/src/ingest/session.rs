//! Finding and reading sessions: the captures that belong together, as one model.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gpumem_wire::{Definition, places};

use crate::error::CollectorError;
use crate::ingest::capture::{CaptureReader, CaptureWriter, Item, is_being_written};
use crate::ingest::decode::Decoded;
use crate::ingest::head::{self, Head};
use crate::ingest::liveness::{Liveness, liveness};
use crate::model::{Process, Session, State};
use crate::symbols;

/// The ending of a capture's name.
const EXTENSION: &str = "gpumem";

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// One capture.
    File(PathBuf),
    /// All captures in a folder.
    Directory(PathBuf),
}

impl Source {
    /// The source at a path.
    ///
    /// # Errors
    /// [`CollectorError::Io`] where nothing is there.
    pub fn at(path: &Path) -> Result<Self, CollectorError> {
        let metadata = fs::metadata(path).map_err(CollectorError::io(path))?;
        Ok(if metadata.is_dir() {
            Self::Directory(path.into())
        } else {
            Self::File(path.into())
        })
    }
}

/// Reads a session.
///
/// # Errors
/// Those of [`CaptureReader::open`]; of a folder, [`CollectorError::NoSession`] if not one of its captures can be read. A
/// capture that is damaged in the middle is read up to there, and a note says so.
pub fn open(source: &Source) -> Result<Session, CollectorError> {
    match source {
        Source::File(path) => {
            let mut session = Session::default();
            read(path, &mut session)?;
            session.end_replaced();
            Ok(session)
        }
        Source::Directory(path) => {
            let places = vec![path.clone()];
            read_all(&captures(path), places)
        }
    }
}

/// The folders where captures are kept, the preferred first: the same list as the shim's.
pub fn spool_places() -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    places::spool_folders(|name| env::var(name).ok(), user)
}

/// Reads the newest session of some folders: the capture of the process that began last and, if it wrote that by itself,
/// those of the other processes of its job.
///
/// # Errors
/// [`CollectorError::NoSession`] where there is none; those of [`open`].
pub fn newest(places: &[PathBuf]) -> Result<Session, CollectorError> {
    let heads = all_captures(places)
        .filter_map(|path| Head::read(&path))
        .collect();
    read_all(&head::newest(heads), places.to_vec())
}

/// Reads the last recording of a process; `None` where there is none. Of all captures only the beginnings are looked at, or
/// the processes that they name.
///
/// # Errors
/// Those of [`CaptureReader::open`].
pub fn of_process(pid: u32, places: &[PathBuf]) -> Result<Option<Session>, CollectorError> {
    let last = all_captures(places)
        .flat_map(|path| {
            let of = head::processes(&path).into_iter();
            of.filter(|process| process.pid == pid)
                .map(move |process| (process.started_ns, path.clone()))
        })
        .max();
    let Some((started_ns, path)) = last else {
        return Ok(None);
    };
    let mut session = open(&Source::File(path))?;
    session.processes.retain(|process| {
        let definition = process.definition();
        (definition.pid, definition.started_ns) == (pid, started_ns)
    });
    Ok(Some(session))
}

fn all_captures(places: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    places.iter().flat_map(|place| captures(place))
}

/// The captures of a folder, by name. A folder of somebody else's is not looked into, unless one is root.
fn captures(place: &Path) -> Vec<PathBuf> {
    let me = rustix::process::geteuid();
    let mine =
        fs::metadata(place).is_ok_and(|metadata| me.is_root() || metadata.uid() == me.as_raw());
    let Some(entries) = mine.then(|| fs::read_dir(place).ok()).flatten() else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == EXTENSION))
        .collect();
    found.sort();
    found
}

fn read_all(paths: &[PathBuf], places: Vec<PathBuf>) -> Result<Session, CollectorError> {
    let mut session = Session::default();
    let mut last = None;
    for path in paths {
        if let Err(error) = read(path, &mut session) {
            session.note(error.to_string());
            last = Some(error);
        }
    }
    session.end_replaced();
    match last {
        Some(error) if session.files.is_empty() => Err(error),
        None if session.files.is_empty() => Err(CollectorError::NoSession { places }),
        _ => Ok(session),
    }
}

/// Reads one capture into a session.
fn read(path: &Path, session: &mut Session) -> Result<(), CollectorError> {
    let mut reader = CaptureReader::open(path)?;
    let mut numbers: HashMap<u32, usize> = HashMap::new();
    let mut unreadable = 0;
    loop {
        let item = match reader.read_next() {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(error) => {
                session.truncated = true;
                session.note(error.to_string());
                break;
            }
        };
        let (number, first, last, decoded) = match item {
            Item::Chunk(chunk) => (
                chunk.process,
                chunk.first,
                chunk.last,
                Decoded::of(&chunk).ok(),
            ),
            Item::Damaged { header, error } => {
                session.note(error.to_string());
                (header.process, header.first, header.last, None)
            }
        };
        // What says nothing makes no process.
        if matches!(decoded, Some(Decoded::Other)) {
            continue;
        }
        let index = match numbers.get(&number) {
            Some(&index) => index,
            None => {
                let Some(index) = session.add_process() else {
                    continue;
                };
                numbers.insert(number, index);
                index
            }
        };
        match decoded {
            Some(decoded) => {
                if let Decoded::Definitions {
                    unreadable: bad, ..
                } = &decoded
                {
                    unreadable += bad;
                }
                decoded.feed(session, index);
            }
            None => session.processes[index].lose_events(
                last.0
                    .saturating_sub(first.0)
                    .saturating_add(u64::from(first.0 > 0)),
            ),
        }
    }
    let name = path.display();
    if unreadable > 0 {
        session.note(format!(
            "{name}: {unreadable} definitions could not be read"
        ));
    }
    if reader.skipped() > 0 {
        let skipped = reader.skipped();
        session.note(format!(
            "{name}: {skipped} parts were written by a later gpumem and are left out"
        ));
    }
    if reader.truncated() {
        session.truncated = true;
        session.note(format!(
            "{name} ends in the middle of a record: it is being written, or its writer was stopped; all before it counts"
        ));
    }
    let whole = !session.truncated;
    session.files.push(path.to_owned());
    settle(path, session, &numbers, whole);
    Ok(())
}

/// After all of a capture was read: how its processes fare, and names for their frames. Names that were found here are added
/// to the capture, if it is whole, ours, and nobody writes to it any more.
fn settle(path: &Path, session: &mut Session, numbers: &HashMap<u32, usize>, whole: bool) {
    let read_bytes = fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut found: Vec<(u32, Vec<Definition>)> = Vec::new();
    let mut all_ended = true;
    for (&number, &index) in numbers {
        let process = &mut session.processes[index];
        let state = state(process, path);
        process.set_state(state);
        all_ended &= matches!(state, State::Ended | State::Killed);
        let names = symbols::symbolise(process);
        if !names.is_empty() {
            found.push((number, names));
        }
    }
    if whole && all_ended && !found.is_empty() && is_mine(path) {
        found.sort_by_key(|(number, _)| *number);
        if let Err(error) = append(path, read_bytes, &found) {
            session.note(format!(
                "the names that were found could not be kept: {error}"
            ));
        }
    }
}

/// How a process fares. One that said no goodbye and cannot be seen from here (another host, a pid namespace of its own)
/// runs if its capture is being written; if not, nothing says what became of it: a lock may not reach across a network.
fn state(process: &Process, path: &Path) -> State {
    if process.end().is_some() {
        return process.state();
    }
    match liveness(process.definition()) {
        Liveness::Running => State::Running,
        Liveness::Gone => State::Killed,
        Liveness::Unknown if is_being_written(path) => State::Running,
        Liveness::Unknown => State::Unknown,
    }
}

fn is_mine(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        metadata.is_file()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && !metadata.permissions().readonly()
    })
}

/// Adds definitions to a capture, unless another reader does so or did so since it was read.
fn append(
    path: &Path,
    read_bytes: u64,
    found: &[(u32, Vec<Definition>)],
) -> Result<(), CollectorError> {
    let Some(mut writer) = CaptureWriter::append(path, read_bytes)? else {
        return Ok(());
    };
    for (number, definitions) in found {
        writer.definitions(*number, definitions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
