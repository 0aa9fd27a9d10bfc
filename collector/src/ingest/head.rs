//! What a capture begins with, and which captures belong together.
//!
//! A process that records by itself writes a file of its own. Where a launcher gives its job a name, that name says which
//! files are one session. Where none does there is the process group, and a shell that is not interactive runs all that it is
//! told in one: then only processes that lived at the same time, a parent and its child, and a program and what it ran in its
//! place are taken together.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use gpumem_wire::define::ProcessDefinition;
use gpumem_wire::{Chunk, ChunkKind, Definition};

use crate::ingest::capture::CaptureReader;
use crate::ingest::decode::Decoded;
use crate::ingest::liveness::{Liveness, liveness};
use crate::ingest::session::in_order;
use crate::model::session::PROCESSES;

/// What a capture begins with.
#[derive(Clone, Debug)]
pub(super) struct Head {
    /// The file.
    pub(super) path: PathBuf,
    /// Whether a process wrote it by itself: then it has one process, numbered 0. A collector numbers from 1.
    spool: bool,
    /// Its first process.
    pub(super) process: ProcessDefinition,
}

/// What the captures of a job have in common.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Job {
    name: Vec<String>,
    /// Whether the name is of this one job alone. One that others may have too says less than the time.
    alone: bool,
}

impl Head {
    /// Reads as far as the first process's definition; `None` of what is no capture or does not begin with one.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut reader = CaptureReader::open(path).ok()?;
        let (header, stored) = reader.read_stored(|_| true).ok()??;
        let chunk = Chunk::from_stored(&header, &stored).ok()?;
        let process = process_of(&chunk)?;
        Some(Self {
            path: path.to_owned(),
            spool: chunk.process == 0,
            process,
        })
    }

    /// The job of a process that recorded by itself; `None` for a collector's capture, which is a session already.
    pub(super) fn job(&self) -> Option<Job> {
        let process = &self.process;
        let variable = |name: &str| {
            process
                .environment
                .iter()
                .find(|(key, value)| key == name && !value.is_empty())
                .map(|(_, value)| value.as_str())
        };
        let (name, alone) = if let Some(name) = variable("GPUMEM_SESSION") {
            (format!("named {name}"), true)
        } else if let Some(job) = variable("SLURM_JOB_ID") {
            // Without a step it runs in the job's own shell, among whatever else that shell runs.
            let step = variable("SLURM_STEP_ID");
            (format!("slurm {job} {step:?}"), step.is_some())
        } else if let Some(run) = variable("TORCHELASTIC_RUN_ID").filter(|run| *run != "none") {
            (format!("torchelastic {run}"), true)
        } else if variable("TORCHELASTIC_RUN_ID").is_some() {
            // torchrun calls all runs "none" that were not named, and gives each worker a process group of its own.
            (
                format!("parent {} {}", process.pid_namespace, process.parent),
                false,
            )
        } else {
            (
                format!("group {} {}", process.pid_namespace, process.group),
                false,
            )
        };
        self.spool.then(|| Job {
            name: vec![process.host.clone(), process.boot_id.clone(), name],
            alone,
        })
    }

    /// When the process ended, in nanoseconds since the epoch, as far as is known: its goodbye, else its last events.
    fn ended_ns(&self) -> u64 {
        if liveness(&self.process) == Liveness::Running {
            return u64::MAX;
        }
        ended_ns(&self.path)
            .unwrap_or(0)
            .max(self.process.started_ns)
    }
}

/// The captures of the newest session of these: that of the process that began last, and those of its job.
pub(super) fn newest(mut heads: Vec<Head>) -> Vec<PathBuf> {
    heads.sort_by(|a, b| (b.process.started_ns, &b.path).cmp(&(a.process.started_ns, &a.path)));
    let Some(first) = heads.first() else {
        return Vec::new();
    };
    let Some(job) = first.job() else {
        return vec![first.path.clone()];
    };
    heads.retain(|head| head.job().as_ref() == Some(&job));
    let mut paths: Vec<PathBuf> = if job.alone {
        heads.into_iter().map(|head| head.path).collect()
    } else {
        together(heads)
    };
    in_order(&mut paths);
    paths
}

/// Of processes in the order in which they began, the last first: those that lived together with the first or are its kin,
/// and so on.
fn together(heads: Vec<Head>) -> Vec<PathBuf> {
    let mut members = Vec::new();
    let mut between = Vec::new();
    let (mut ids, mut parents) = (HashSet::new(), HashSet::new());
    let mut began_ns = 0;
    for head in heads {
        let process = &head.process;
        let id = (process.pid, process.start_ticks);
        let kin = ids.contains(&id) || parents.contains(&process.pid);
        let lived_along = || members.is_empty() || head.ended_ns() >= began_ns;
        if !kin && !lived_along() {
            between.push(head.path);
            continue;
        }
        ids.insert(id);
        parents.insert(process.parent);
        if !kin || head.ended_ns() >= began_ns {
            // What began after this one, which lived on until the others began, lived along with it.
            members.append(&mut between);
        }
        began_ns = process.started_ns;
        members.push(head.path);
    }
    members
}

/// The processes of a capture, by their first definitions alone.
pub(super) fn processes(path: &Path) -> Vec<ProcessDefinition> {
    let Ok(mut reader) = CaptureReader::open(path) else {
        return Vec::new();
    };
    let mut numbers = HashSet::new();
    let mut found = Vec::new();
    while found.len() < PROCESSES {
        let wanted = |kind: ChunkKind| kind == ChunkKind::Definitions;
        let Ok(Some((header, stored))) = reader.read_stored(wanted) else {
            break;
        };
        if numbers.contains(&header.process) {
            continue;
        }
        let chunk = Chunk::from_stored(&header, &stored);
        if let Some(process) = chunk.ok().as_ref().and_then(process_of) {
            numbers.insert(header.process);
            found.push(process);
        }
        if header.process == 0 {
            break;
        }
    }
    found
}

/// The time of a file's goodbye, else of its last chunk of events.
fn ended_ns(path: &Path) -> Option<u64> {
    let mut reader = CaptureReader::open(path).ok()?;
    let mut last = None;
    let wanted = |kind: ChunkKind| matches!(kind, ChunkKind::Definitions | ChunkKind::Events);
    while let Ok(Some((header, stored))) = reader.read_stored(wanted) {
        if header.kind == ChunkKind::Events {
            last = Some((header, stored));
            continue;
        }
        let decoded = Chunk::from_stored(&header, &stored)
            .and_then(|chunk| Decoded::of(&chunk))
            .ok();
        if let Some(Decoded::Definitions { definitions, .. }) = decoded
            && let Some(end_ns) = definitions.iter().find_map(|definition| match definition {
                Definition::End(end) => Some(end.time_ns),
                _ => None,
            })
        {
            return Some(end_ns);
        }
    }
    let (header, stored) = last?;
    let chunk = Chunk::from_stored(&header, &stored).ok()?;
    match Decoded::of(&chunk).ok()? {
        Decoded::Events { anchor, .. } => Some(anchor.realtime_ns),
        _ => None,
    }
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
