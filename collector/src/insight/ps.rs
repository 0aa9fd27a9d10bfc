//! The processes of a session: `gpumem ps`, `gpumem.ps/1`.

use serde::Serialize;

use crate::insight::who;
use crate::model::totals::saturating_sum;
use crate::model::{Process, Session, State};

/// The first key of the report.
pub const SCHEMA: &str = "gpumem.ps/1";

/// The whole report.
#[derive(Clone, Debug, Serialize)]
pub struct PsReport {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// One row a process.
    pub processes: Vec<ProcessRow>,
}

/// One process.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessRow {
    /// The process id, as the process sees it.
    pub pid: u32,
    /// Its command line, secrets masked.
    pub command: String,
    /// Its host.
    pub host: String,
    /// Its rank in its job.
    pub rank: Option<u32>,
    /// The simulated device that it ran on; null for a real one.
    pub simulated: Option<String>,
    /// The ordinals of the devices on which it holds or held memory.
    pub devices: Vec<i16>,
    /// `running`, `ended` or `killed`; null where that cannot be told.
    pub state: Option<&'static str>,
    /// Bytes in use on all devices.
    pub live_bytes: u64,
    /// Bytes taken from the driver on all devices.
    pub reserved_bytes: u64,
    /// How it is recorded; null where the process does not say.
    pub mode: Option<String>,
    /// Events that were lost.
    pub lost_events: u64,
}

/// The processes of a session.
pub fn ps(session: &Session) -> PsReport {
    PsReport {
        schema: SCHEMA,
        processes: session.processes.iter().map(row).collect(),
    }
}

fn row(process: &Process) -> ProcessRow {
    let definition = process.definition();
    let on_devices = || process.totals().iter().filter(|(device, _)| device.0 >= 0);
    let mode = definition
        .environment
        .iter()
        .find(|(name, _)| name == "GPUMEM_MODE")
        .map(|(_, value)| value.clone());
    ProcessRow {
        pid: definition.pid,
        command: who::command(process),
        host: definition.host.clone(),
        rank: who::rank(process),
        simulated: who::simulated(process),
        devices: on_devices().map(|(device, _)| device.0).collect(),
        state: Some(process.state())
            .filter(|state| *state != State::Unknown)
            .map(State::name),
        live_bytes: saturating_sum(on_devices().map(|(_, totals)| totals.live.live_bytes)),
        reserved_bytes: saturating_sum(on_devices().map(|(_, totals)| totals.reserved.live_bytes)),
        mode,
        lost_events: process.lost().total(),
    }
}
