//! `gpumem ps`: the processes of a recording.

use std::process::ExitCode;

use clap::Args;
use gpumem_collector::insight::ps::ps as list;

use crate::show::heading::{heading, now_ns};
use crate::{Failure, show, source};

/// The processes of a recording
#[derive(Args)]
pub(crate) struct PsArguments {
    /// A capture, a folder of them, a process id, or nothing for the newest
    source: Option<String>,
    /// The report as JSON (gpumem.ps/1)
    #[arg(long)]
    json: bool,
}

/// Prints the table.
pub(crate) fn ps(arguments: &PsArguments) -> Result<ExitCode, Failure> {
    let session = source::read(arguments.source.as_deref())?;
    let report = list(&session);
    let printed = if arguments.json {
        show::print_json(&report)
    } else {
        let notes = show::notes::notes(&session);
        let table = show::ps::ps(&report);
        show::print(&format!("{}{table}{notes}", heading(&session, now_ns())))
    };
    printed.map_err(Failure::with(1))?;
    Ok(ExitCode::SUCCESS)
}
