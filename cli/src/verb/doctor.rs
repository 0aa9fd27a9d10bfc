//! `gpumem doctor`: why nothing is seen, with the mend.

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use crate::doctor::{DoctorReport, Level, SCHEMA, machine, program, seen};
use crate::run::{Job, Output, Recording, run};
use crate::show::colour::Style;
use crate::show::size::span;
use crate::verb::sim::parse_time;
use crate::{Failure, show};

/// How long the program may run where nobody says.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The exit status where a problem was found.
const PROBLEM: u8 = 1;

/// Why nothing is seen, with the mend
#[derive(Args)]
#[command(after_help = "\
Looks at the machine: the recorder, the driver, the devices, the places for
recordings, what else is preloaded. No CUDA call is made.

With CMD it looks at that program, too: whether it is there, may be executed,
is for this machine, is not static, setuid, for musl or in a container; which
Python it is. If nothing is in the way, CMD is run under the recorder to see
whether CUDA calls arrive, and ended after 60 s (--timeout); what it prints goes
to stderr, and no recording is kept. With --no-run it is only looked at.

The exit status is 0 without a problem (warnings are none), 1 with one, 2 for
wrong usage.

With --json: checks, in order, each with name, ok (false for a problem), level
(ok, warn, fail), found, mend and line (a line for a shell), null where there is
none; command; ran, and the status with which CMD ended.

Examples:
  gpumem doctor
  gpumem doctor -- python train.py
  gpumem doctor --no-run -- docker run --gpus all image python train.py")]
pub(crate) struct DoctorArguments {
    /// Only look at the program
    #[arg(long)]
    no_run: bool,
    /// How long the program may run: 90s, 10min, 2h [60s]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    timeout: Option<Duration>,
    /// The report as JSON (gpumem.doctor/1)
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Looks, runs what must be run, and prints the report.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let report = examine(arguments)?;
    let printed = if arguments.json {
        show::print_json(&report)
    } else {
        show::print(&show::doctor::doctor(&report, Style::of(&io::stdout())))
    };
    printed.map_err(Failure::with(PROBLEM))?;
    Ok(if report.count(Level::Fail) > 0 {
        ExitCode::from(PROBLEM)
    } else {
        ExitCode::SUCCESS
    })
}

fn examine(arguments: &DoctorArguments) -> Result<DoctorReport, Failure> {
    let (checks, shim) = machine();
    let command = &arguments.command;
    let mut report = DoctorReport {
        schema: SCHEMA,
        command: command
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        ran: false,
        status: None,
        checks,
    };
    if !command.is_empty() {
        let (found, enters) = program(command, shim.as_ref());
        report.checks.extend(found);
        // Without a place for its socket nothing can be run; that is among the problems already.
        let can_run = enters && shim.is_some() && !report.has_problem("socket");
        if can_run && !arguments.no_run {
            let timeout = arguments.timeout.unwrap_or(TIMEOUT);
            show::say(&format!(
                "gpumem: running it, {} at most, to see whether CUDA calls arrive\n",
                span(timeout.as_secs())
            ));
            let outcome = run(&Job {
                command: command.clone(),
                environment: Vec::new(),
                preload: Vec::new(),
                recording: Recording::None,
                output: Output::ToStderr,
                timeout: Some(timeout),
                wait: false,
            })?;
            seen(&mut report.checks, &outcome, timeout);
            (report.ran, report.status) = (true, outcome.code);
        }
    }
    Ok(report)
}
