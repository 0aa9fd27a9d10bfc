//! `gpumem leaks`: what leaks, at which line, since when, and what to do.

use std::io;
use std::process::ExitCode;

use clap::Args;
use gpumem_collector::insight::leaks::{ProcessLeaks, leaks as find};
use gpumem_collector::model::Session;

use crate::show::colour::Style;
use crate::show::heading::{heading, now_ns};
use crate::show::leaks::{Origin, Shown};
use crate::{Failure, show, source};

/// Leaks of each process and device that the text shows.
pub(crate) const TOP: usize = 10;

/// What leaks, at which line, since when
#[derive(Args)]
pub(crate) struct LeaksArguments {
    /// A capture, a folder of them, a process id, or nothing for the newest
    source: Option<String>,
    /// The report as JSON (gpumem.leaks/1)
    #[arg(long)]
    json: bool,
    /// How many leaks of each process and device to show [text: 10, JSON: all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// All frames of each leak, native ones too
    #[arg(long)]
    frames: bool,
}

/// Prints the report.
pub(crate) fn leaks(arguments: &LeaksArguments) -> Result<ExitCode, Failure> {
    let session = source::read(arguments.source.as_deref())?;
    let shown = Shown {
        top: arguments.top.unwrap_or(TOP),
        all_frames: arguments.frames,
    };
    let printed = if arguments.json {
        let mut report = find(&session);
        for row in &mut report.processes {
            row.leaks.truncate(arguments.top.unwrap_or(usize::MAX));
        }
        show::print_json(&report)
    } else {
        show::print(&text(&session, shown, Style::of(&io::stdout()), now_ns()))
    };
    printed.map_err(Failure::with(1))?;
    Ok(ExitCode::SUCCESS)
}

/// The report as text; `now_ns` is the present in nanoseconds since the epoch.
pub(crate) fn text(session: &Session, shown: Shown, style: Style, now_ns: u64) -> String {
    let report = find(session);
    let origin = |row: &ProcessLeaks| {
        session
            .processes
            .iter()
            .map(|process| process.definition())
            .find(|definition| definition.pid == row.pid && definition.host == row.host)
            .map_or_else(Origin::default, |definition| Origin {
                started_ns: definition.started_ns,
                directory: &definition.directory,
            })
    };
    let mut out = heading(session, now_ns);
    out.push_str(&show::leaks::leaks(&report, shown, style, origin));
    let notes = show::notes::notes(session);
    if !notes.is_empty() {
        out.push('\n');
        out.push_str(&notes);
    }
    out
}
