//! Finding and reading sessions: the captures that belong together, as one model.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use gpumem_wire::{ChunkKind, Definition, Seq, places};

use crate::error::CollectorError;
use crate::ingest::capture::{CaptureReader, CaptureWriter, Item, is_being_written};
use crate::ingest::decode::Decoded;
use crate::ingest::head::{self, Head};
use crate::ingest::liveness::{Liveness, liveness};
use crate::ingest::running::Collecting;
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

/// Reads what is meant where nothing is named: the processes that a running collector hears now; if it hears none, or there is
/// no collector, the newest session, be it of the collector's or in these folders.
///
/// # Errors
/// Those of [`newest`].
pub fn current(
    places: &[PathBuf],
    collecting: Option<&Collecting>,
) -> Result<Session, CollectorError> {
    let Some(collecting) = collecting else {
        return newest(places);
    };
    if !collecting.open.is_empty() {
        let mut paths = collecting.open.clone();
        in_order(&mut paths);
        return read_all(&paths, collecting.folders());
    }
    // Its last capture may lie elsewhere; in one of the folders it is met twice.
    let mut paths: Vec<PathBuf> = all_captures(places)
        .chain(collecting.last.clone())
        .collect();
    paths.sort();
    paths.dedup();
    let heads = paths.iter().filter_map(|path| Head::read(path)).collect();
    read_all(&head::newest(heads), places.to_vec())
}

/// Reads the last recording of a process; `None` where there is none. Of all captures only the beginnings are looked at, or
/// the processes that they name.
///
/// # Errors
/// Those of [`CaptureReader::open`].
pub fn of_process(pid: u32, places: &[PathBuf]) -> Result<Option<Session>, CollectorError> {
    let mut found: Vec<(u64, PathBuf)> = all_captures(places)
        .flat_map(|path| {
            let of = head::processes(&path).into_iter();
            of.filter(|process| process.pid == pid)
                .map(move |process| (process.started_ns, path.clone()))
        })
        .collect();
    let Some(started_ns) = found.iter().map(|(started_ns, _)| *started_ns).max() else {
        return Ok(None);
    };
    // Its parts, if it went on by itself when its collector ended.
    found.retain(|(began_ns, _)| *began_ns == started_ns);
    let mut paths: Vec<PathBuf> = found.into_iter().map(|(_, path)| path).collect();
    in_order(&mut paths);
    paths.dedup();
    let mut session = read_all(&paths, places.to_vec())?;
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
    in_order(&mut found);
    found
}

/// Sorts captures as they are read: by name, wherever they lie. A collector's part of a process sorts before that which the
/// process wrote afterwards.
pub(super) fn in_order(paths: &mut [PathBuf]) {
    paths.sort_by(|a, b| (a.file_name(), a).cmp(&(b.file_name(), b)));
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
                let known = decoded
                    .as_ref()
                    .and_then(|decoded| continued(path, number, decoded, session, &numbers));
                let Some(index) = known.or_else(|| session.add_process()) else {
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
    // What is being written ends wherever its writer is.
    if reader.truncated() && !is_being_written(path) {
        session.truncated = true;
        session.note(format!(
            "{name} ends in the middle of a record: its writer was stopped; all before it counts"
        ));
    }
    let whole = !session.truncated;
    session.files.push(path.to_owned());
    settle(path, session, &numbers, whole);
    Ok(())
}

/// The process of the session that goes on here: one that went on by itself when its collector ended, and so has a capture of
/// the collector's and one of its own. What the collector had not read when it was killed is lost.
fn continued(
    path: &Path,
    number: u32,
    decoded: &Decoded,
    session: &mut Session,
    numbers: &HashMap<u32, usize>,
) -> Option<usize> {
    let Decoded::Definitions { definitions, .. } = decoded else {
        return None;
    };
    let Some(Definition::Process(definition)) = definitions.first() else {
        return None;
    };
    let index = session
        .processes
        .iter()
        .rposition(|process| process.is(definition) && process.end().is_none())
        .filter(|index| !numbers.values().any(|known| known == index))?;
    let process = session.processes.get_mut(index)?;
    let last = process.last_seq();
    if let Some(first) = first_event(path, number) {
        // A copy of the same capture is not its continuation.
        let missing = first.0.checked_sub(last.0)?.checked_sub(1)?;
        process.lose_events(missing);
    }
    Some(index)
}

/// The number of the first event of a process in a capture.
fn first_event(path: &Path, number: u32) -> Option<Seq> {
    let mut reader = CaptureReader::open(path).ok()?;
    while let Ok(Some((header, _))) = reader.read_stored(|kind| kind == ChunkKind::Events) {
        if header.process == number && header.first > Seq(0) {
            return Some(header.first);
        }
    }
    None
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
