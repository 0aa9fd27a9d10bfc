//! What a verb reads: a capture, a folder of them, the recording of a process, or what a running collector hears, else the
//! newest session.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use gpumem_collector::ingest::running::{Collecting, socket_places};
use gpumem_collector::ingest::session::{self, Source};
use gpumem_collector::model::Session;

use crate::Failure;

/// Reads the session that the user names.
pub(crate) fn read(source: Option<&str>) -> Result<Session, Failure> {
    session_of(source).map_err(Failure::with(Failure::SOURCE))
}

fn session_of(source: Option<&str>) -> Result<Session> {
    let mut places = session::spool_places();
    let collecting = || Collecting::find(&socket_places());
    let Some(source) = source else {
        return Ok(session::current(&places, collecting().as_ref())?);
    };
    let path = Path::new(source);
    if path.exists() {
        return Ok(session::open(&Source::at(path)?)?);
    }
    match source.parse::<u32>() {
        Ok(pid) => {
            let folders = collecting().map(|collecting| collecting.folders());
            let others = folders.unwrap_or_default().into_iter();
            let others = others.filter(|folder| !places.contains(folder));
            let others = Vec::from_iter(others);
            places.extend(others);
            of_process(pid, &places)
        }
        Err(_) => Err(anyhow!(
            "{source} is no capture, folder or process id: nothing of that name is there. Give a .gpumem file, a folder of \
             them, a process id, or nothing for the newest session"
        )),
    }
}

/// The last recording of a process.
fn of_process(pid: u32, places: &[PathBuf]) -> Result<Session> {
    if let Some(session) = session::of_process(pid, places)? {
        return Ok(session);
    }
    let looked: Vec<String> = places
        .iter()
        .map(|place| place.display().to_string())
        .collect();
    Err(anyhow!(
        "no recording of process {pid} in {}. Start the program under `gpumem run`, or give a capture file",
        looked.join(", ")
    ))
}
