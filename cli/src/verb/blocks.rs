//! `gpumem blocks`: the largest live blocks, how old they are and whose.

use std::process::ExitCode;

use clap::Args;
use gpumem_collector::insight::blocks::{ProcessBlocks, blocks as list};
use gpumem_collector::model::Session;

use crate::show::heading::{heading, now_ns};
use crate::{Failure, show, source};

/// The largest live blocks: whose, since when
#[derive(Args)]
pub(crate) struct BlocksArguments {
    /// A capture, a folder of them, a process id, or nothing for the newest
    source: Option<String>,
    /// How many to show of each process and device
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// The report as JSON (gpumem.blocks/1)
    #[arg(long)]
    json: bool,
}

/// Prints the tables.
pub(crate) fn blocks(arguments: &BlocksArguments) -> Result<ExitCode, Failure> {
    let session = source::read(arguments.source.as_deref())?;
    let printed = if arguments.json {
        show::print_json(&list(&session, arguments.top))
    } else {
        show::print(&text(&session, arguments.top, now_ns()))
    };
    printed.map_err(Failure::with(Failure::FAILED))?;
    Ok(ExitCode::SUCCESS)
}

/// The report as text; `now_ns` is the present in nanoseconds since the epoch.
pub(crate) fn text(session: &Session, top: usize, now_ns: u64) -> String {
    let report = list(session, top);
    let directory = |row: &ProcessBlocks| {
        let mut definitions = session.processes.iter().map(|process| process.definition());
        definitions
            .find(|definition| definition.pid == row.pid && definition.host == row.host)
            .map_or("", |definition| definition.directory.as_str())
    };
    let mut out = heading(session, now_ns);
    out.push_str(&show::blocks::blocks(&report, directory));
    let notes = show::notes::notes(session);
    if !notes.is_empty() {
        out.push('\n');
        out.push_str(&notes);
    }
    out
}
