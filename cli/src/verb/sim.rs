//! `gpumem sim`: will it fit? A dry run on a simulated device.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;

use crate::run::{Job, Output, Recording, run};
use crate::show::colour::Style;
use crate::sim::machine::{DEFAULT, devices, parse_count, parse_memory};
use crate::sim::report::{INTERRUPTED, SimReport, Verdict};
use crate::sim::search::{Task, Vary, search};
use crate::sim::{Machine, Simulation, SmallCopies};
use crate::{Failure, show};

/// How long one run of a search may take where nobody says.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Will it fit? A dry run on a simulated GPU
#[derive(Args)]
#[command(after_help = "\
CMD runs as it is, unchanged: PyTorch with or without NVIDIA's packages, or any
program on the CUDA driver. No GPU is needed. Its allocations are the real ones,
so that memory is right to a few percent; what kernels compute is not there, so
that values (a loss, say) are without meaning. Let it do two or three steps and
end: unless sizes differ from step to step, the peak is among them.

The largest batch: write {NAME} where the value stands in CMD and give its range
with --vary. CMD is run for some values, each time to its end or for 10 minutes
(--timeout), its output hidden. Without an end (batch=1..) the value grows until
it does not fit.

What depends on computed values cannot be known (how many elements are not zero,
a beam search): the operators are named, and numbers that are read back are 0.
With --small-d2h off they are what lies in the memory.

The exit status is 0 if it fits, 1 if it does not, 2 for wrong usage, 4 if that
cannot be told since CMD failed otherwise, took too long or used no GPU, 130 if
Ctrl-C ended it; 125 to 127 as with gpumem run.

Examples:
  gpumem sim --devices
  gpumem sim --device rtx-4090 -- python train.py --steps 3
  gpumem sim --device rtx-4090 --memory 16GiB --vary batch=1..1024 -- \\
      python train.py --steps 3 --batch {batch}
  gpumem sim a100-80,count=2 -- torchrun --nproc-per-node 2 train.py
  gpumem sim --device t4 --json -- python infer.py")]
pub(crate) struct SimArguments {
    /// The device, as in --device
    #[arg(value_name = "DEVICE", conflicts_with = "device")]
    named: Option<Machine>,
    /// DEVICE[,memory=24GiB][,count=2] [default: h200]
    #[arg(long, value_name = "DEVICE")]
    device: Option<Machine>,
    /// Memory of each device [default: its own]
    #[arg(long, value_name = "SIZE", value_parser = parse_memory)]
    memory: Option<u64>,
    /// How many devices there are [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_count)]
    count: Option<u32>,
    /// Copies to the host up to N bytes bring 0 [default: 16]
    #[arg(long, value_name = "N|off")]
    small_d2h: Option<SmallCopies>,
    /// Find the largest that fits: NAME=LOW..HIGH
    #[arg(long, value_name = "RANGE")]
    vary: Option<Vary>,
    /// How long one run may take: 90s, 10min, 2h
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// Lines of the program to show [10, JSON: all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// As JSON (gpumem.sim/1); CMD prints to stderr
    #[arg(long)]
    json: bool,
    /// List the devices that can be simulated
    #[arg(long)]
    devices: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Lines that the text shows.
pub(crate) const TOP: usize = 10;

/// Runs the program and says whether it fits.
pub(crate) fn sim(arguments: &SimArguments) -> Result<ExitCode, Failure> {
    if arguments.devices {
        show::print(&devices()).map_err(Failure::with(1))?;
        return Ok(ExitCode::SUCCESS);
    }
    let usage = |why: String| Failure::with(Failure::USAGE)(anyhow!(why));
    let machine = machine(arguments).map_err(usage)?;
    if arguments.command.is_empty() {
        return Err(usage(
            "no program was named. Put it behind --, as in gpumem sim --device rtx-4090 -- python train.py".into(),
        ));
    }
    if let Some(vary) = &arguments.vary
        && !vary.is_in(&arguments.command)
    {
        let place = vary.placeholder();
        return Err(usage(format!(
            "CMD has no place for the value: write {place} where it stands, as in -- python train.py --batch {place}"
        )));
    }
    let small_copies = arguments.small_d2h.unwrap_or_default();
    let mut simulation =
        Simulation::make(machine, small_copies).map_err(Failure::with(Failure::BEFORE_RUN))?;
    show::say(&format!("gpumem: on a simulated {}\n", machine.describe()));
    let report = match &arguments.vary {
        Some(vary) => search(
            &Task {
                command: &arguments.command,
                vary,
                machine,
                timeout: arguments.timeout.unwrap_or(TIMEOUT),
            },
            &mut simulation,
        )?,
        None => once(arguments, &simulation)?,
    };
    print(arguments, report)
}

/// Runs the program once, with its own input and output.
fn once(arguments: &SimArguments, simulation: &Simulation) -> Result<SimReport, Failure> {
    let patience = simulation.patience();
    let outcome = run(&Job {
        command: arguments.command.clone(),
        environment: simulation.environment(),
        preload: simulation.preload(),
        recording: Recording::None,
        output: if arguments.json {
            Output::ToStderr
        } else {
            Output::Inherited
        },
        timeout: arguments.timeout,
        wait: false,
    });
    patience.end();
    let outcome = outcome?;
    Ok(SimReport::of(
        simulation.machine(),
        &arguments.command,
        &outcome,
        &simulation.notes(),
    ))
}

fn print(arguments: &SimArguments, mut report: SimReport) -> Result<ExitCode, Failure> {
    let status = match &report.search {
        _ if report.exit_status == Some(INTERRUPTED) => INTERRUPTED as u8,
        Some(search) if search.largest.is_some() && report.verdict != Verdict::Inconclusive => 0,
        _ => report.verdict.status(),
    };
    let printed = if arguments.json {
        let top = arguments.top.unwrap_or(usize::MAX);
        for row in &mut report.processes {
            row.by_site.truncate(top);
        }
        show::print_json(&report)
    } else {
        let directory = std::env::current_dir().unwrap_or_default();
        let top = arguments.top.unwrap_or(TOP);
        let style = Style::of(&io::stdout());
        show::print(&show::sim::sim(
            &report,
            top,
            style,
            &directory.to_string_lossy(),
        ))
    };
    printed.map_err(Failure::with(1))?;
    Ok(ExitCode::from(status))
}

fn machine(arguments: &SimArguments) -> Result<Machine, String> {
    let named = arguments.named.or(arguments.device);
    let mut machine = named.map_or_else(|| DEFAULT.parse(), Ok)?;
    if let Some(memory_bytes) = arguments.memory {
        machine = machine.with_memory(memory_bytes)?;
    }
    if let Some(count) = arguments.count {
        machine = machine.with_count(count);
    }
    Ok(machine)
}

/// A span of time: `90s`, `10min`, `2h`, or seconds.
pub(crate) fn parse_time(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let seconds = match unit.trim() {
        "" | "s" => Some(1),
        "m" | "min" => Some(60),
        "h" => Some(3600),
        _ => None,
    };
    number
        .parse::<u64>()
        .ok()
        .zip(seconds)
        .and_then(|(number, seconds)| number.checked_mul(seconds))
        .filter(|seconds| (1..=7 * 24 * 3600).contains(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| {
            format!("`{text}` is no span of time: give seconds, min or h, as in 90s or 10min")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time() {
        assert_eq!(parse_time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_time("10min"), Ok(TIMEOUT));
        assert_eq!(parse_time("2 h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "min", "0", "-1", "99999999999999999999h", "3 days"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }
}
