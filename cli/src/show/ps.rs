//! The table of processes.

use gpumem_collector::insight::ps::PsReport;

use super::size::{count, size};
use super::table::{Align, table};
use super::text::clean;

/// The table, without the first line of the report.
pub(crate) fn ps(report: &PsReport) -> String {
    let columns = [
        ("PID", Align::Right),
        ("RANK", Align::Right),
        ("STATE", Align::Left),
        ("DEVICES", Align::Left),
        ("LIVE", Align::Right),
        ("RESERVED", Align::Right),
        ("LOST", Align::Right),
        ("COMMAND", Align::Left),
    ];
    let rows: Vec<Vec<String>> = report
        .processes
        .iter()
        .map(|row| {
            let devices: Vec<String> = row.devices.iter().map(i16::to_string).collect();
            vec![
                row.pid.to_string(),
                row.rank.map_or_else(|| "-".into(), |rank| rank.to_string()),
                row.state.unwrap_or("unknown").into(),
                if devices.is_empty() {
                    "-".into()
                } else {
                    devices.join(",")
                },
                size(row.live_bytes),
                size(row.reserved_bytes),
                count(row.lost_events),
                clean(&row.command),
            ]
        })
        .collect();
    format!("\n{}", table(&columns, &rows))
}
