//! From a report to text: tables that fit 80 columns, in plain ASCII, coloured only on a terminal.

pub(crate) mod blocks;
pub(crate) mod colour;
pub(crate) mod doctor;
pub(crate) mod heading;
pub(crate) mod leaks;
pub(crate) mod notes;
pub(crate) mod peak;
pub(crate) mod ps;
pub(crate) mod sim;
pub(crate) mod size;
pub(crate) mod summary;
pub(crate) mod table;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use std::io::{self, ErrorKind, Write};

/// Columns that every report fits.
pub(crate) const WIDTH: usize = 80;

/// Prints a report. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Says something on stderr; where nobody listens, it is not said.
pub(crate) fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints a report as JSON, on one line.
pub(crate) fn print_json(report: &impl serde::Serialize) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(report)?;
    line.push('\n');
    print(&line)
}
