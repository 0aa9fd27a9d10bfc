//! Finding and reading sessions: the captures that belong together, as one model.

use std::collections::HashMap;
use std::env;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gpumem_wire::define::ProcessDefinition;
use gpumem_wire::{Chunk, Definition, places};
use rustix::fs::{FlockOperation, flock};

use crate::error::CollectorError;
use crate::ingest::capture::{CaptureReader, CaptureWriter, Item};
use crate::ingest::decode::Decoded;
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

/// Reads the newest session of some folders: the capture that changed last and, if a process wrote it by itself, those of the
/// other processes of its job.
///
/// # Errors
/// [`CollectorError::NoSession`] where there is none; those of [`open`].
pub fn newest(places: &[PathBuf]) -> Result<Session, CollectorError> {
    let mut found: Vec<(SystemTime, PathBuf)> = places
        .iter()
        .flat_map(|place| captures(place))
        .filter_map(|path| Some((fs::metadata(&path).ok()?.modified().ok()?, path)))
        .collect();
    found.sort();
    let heads = |path: &PathBuf| head(path).map(|head| (path.clone(), head));
    let Some((newest, head)) = found.iter().rev().find_map(|(_, path)| heads(path)) else {
        return Err(CollectorError::NoSession {
            places: places.to_vec(),
        });
    };
    let Some(job) = head.job() else {
        return open(&Source::File(newest));
    };
    let of_job: Vec<PathBuf> = found
        .iter()
        .filter_map(|(_, path)| heads(path))
        .filter(|(_, other)| other.job().as_ref() == Some(&job))
        .map(|(path, _)| path)
        .collect();
    read_all(&of_job, places.to_vec())
}

/// What a capture begins with.
struct Head {
    /// Whether a process wrote it by itself: then it has one process, numbered 0. A collector numbers from 1.
    spool: bool,
    process: ProcessDefinition,
}

impl Head {
    /// What makes the spool files of one job belong together.
    fn job(&self) -> Option<Vec<String>> {
        let process = &self.process;
        let variable = |name: &str| {
            process
                .environment
                .iter()
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.clone())
        };
        let named = variable("GPUMEM_SESSION").map(|name| format!("named {name}"));
        let slurm = variable("SLURM_JOB_ID").map(|job| {
            let step = variable("SLURM_STEP_ID").unwrap_or_default();
            format!("slurm {job} {step}")
        });
        let run = variable("TORCHELASTIC_RUN_ID").map(|run| format!("torchelastic {run}"));
        let job = named
            .or(slurm)
            .or(run)
            .unwrap_or_else(|| format!("group {} {}", process.pid_namespace, process.group));
        self.spool
            .then(|| vec![process.host.clone(), process.boot_id.clone(), job])
    }
}

/// Reads as far as the first process's definition.
fn head(path: &Path) -> Option<Head> {
    let mut reader = CaptureReader::open(path).ok()?;
    let Ok(Some(Item::Chunk(chunk))) = reader.read_next() else {
        return None;
    };
    let spool = chunk.process == 0;
    let process = process_of(&chunk)?;
    Some(Head { spool, process })
}

fn process_of(chunk: &Chunk) -> Option<ProcessDefinition> {
    let Ok(Decoded::Definitions { definitions, .. }) = Decoded::of(chunk) else {
        return None;
    };
    definitions
        .into_iter()
        .find_map(|definition| match definition {
            Definition::Process(process) => Some(process),
            _ => None,
        })
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
        let index = *numbers.entry(number).or_insert_with(|| {
            session.processes.push(Process::default());
            session.processes.len() - 1
        });
        let process = &mut session.processes[index];
        match decoded {
            Some(decoded) => {
                if let Decoded::Definitions {
                    unreadable: bad, ..
                } = &decoded
                {
                    unreadable += bad;
                }
                decoded.feed(process);
            }
            None => process.lose_events(
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
        let running =
            process.end().is_none() && liveness(process.definition()) == Liveness::Running;
        process.set_state(if running {
            State::Running
        } else {
            State::Killed
        });
        all_ended &= !running;
        let names = symbols::symbolise(process);
        if !names.is_empty() {
            found.push((number, names));
        }
    }
    session.end_replaced();
    if whole && all_ended && !found.is_empty() && is_mine(path) {
        found.sort_by_key(|(number, _)| *number);
        if let Err(error) = append(path, read_bytes, &found) {
            session.note(format!(
                "the names that were found could not be kept: {error}"
            ));
        }
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
    let lock = File::open(path).map_err(CollectorError::io(path))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let now_bytes = lock.metadata().map_err(CollectorError::io(path))?.len();
    if now_bytes != read_bytes {
        return Ok(());
    }
    let mut writer = CaptureWriter::append(path)?;
    for (number, definitions) in found {
        writer.definitions(*number, definitions)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
