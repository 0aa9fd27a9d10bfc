//! `gpumem run`: runs a program under the shim, records it, and sums up.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use gpumem_collector::insight::leaks::leaks;

use crate::doctor::{no_driver, warning};
use crate::run::{Job, Outcome, Output, Recording, run as record};
use crate::show::WIDTH;
use crate::show::colour::Style;
use crate::show::text::{clean, wrap};
use crate::sim::{Machine, Simulation, SmallCopies};
use crate::{Failure, show};

/// Run a program and record its GPU memory
#[derive(Args)]
#[command(after_help = "\
The recording goes to FILE, else to $GPUMEM_DIR, else to $XDG_STATE_HOME/gpumem
or ~/.local/state/gpumem, else to $TMPDIR. In FILE %h is the host, %p the
process id of this gpumem, %r the rank, %j the job. A file that is there already
is not overwritten: the new one gets a number.

The exit status is the program's own; 128 and more when a signal ended it; 125
when it could not be started under gpumem, 126 when it is no program, 127 when
there is none.

--sim runs the program on a simulated GPU, none is needed: DEVICE is one of
gpumem sim --devices (h200 if none is named), memory=SIZE and count=N change
it, as in --sim=rtx-4090,memory=16GiB,count=2. Memory is real, values are not:
no kernel computes anything. All processes that CMD starts share the machine.

Examples:
  gpumem run -- python train.py
  gpumem run --sim=a100-40 -- python train.py
  gpumem run -o run-%h-%r.gpumem -- torchrun --nproc-per-node 8 train.py")]
pub(crate) struct RunArguments {
    /// Where to keep the recording
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Wait also for processes that outlive the program
    #[arg(long)]
    wait: bool,
    /// On a simulated GPU: DEVICE[,memory=24GiB][,count=2]
    #[arg(long, value_name = "DEVICE", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    sim: Option<Machine>,
    /// With --sim: copies to the host up to N bytes bring 0
    #[arg(long, value_name = "N|off", requires = "sim")]
    small_d2h: Option<SmallCopies>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let small_copies = arguments.small_d2h.unwrap_or_default();
    let simulation = arguments
        .sim
        .map(|machine| Simulation::make(machine, small_copies))
        .transpose()
        .map_err(Failure::with(Failure::BEFORE_RUN))?;
    let job = Job {
        command: arguments.command.clone(),
        environment: simulation
            .as_ref()
            .map_or_else(Vec::new, Simulation::environment),
        preload: simulation
            .as_ref()
            .map_or_else(Vec::new, Simulation::preload),
        recording: Recording::at(arguments.output.clone()),
        output: Output::Inherited,
        timeout: None,
        wait: arguments.wait,
    };
    if let Some(machine) = arguments.sim {
        show::say(&format!("gpumem: on a simulated {}\n", machine.describe()));
    }
    if let Some(why) = warning(&arguments.command) {
        show::say(&format!("gpumem: warning: {}\n", clean(&why)));
    }
    let outcome = record(&job)?;
    show::say(&report(&outcome));
    if simulation.is_none() && !seen(&outcome) {
        show::say(&show::notes::text(&Vec::from_iter(no_driver())));
    }
    if let Some(simulation) = &simulation {
        show::say(&simulated(simulation));
    }
    Ok(outcome.status)
}

/// What is said at the end of a simulated run.
fn simulated(simulation: &Simulation) -> String {
    let name = simulation.machine().describe();
    let mut out = format!(
        "gpumem: {}\n",
        wrap(
            &format!(
                "the GPU was simulated ({name}): its memory is as on a real one, what was computed is not"
            ),
            8,
            WIDTH
        )
    );
    out.push_str(&show::sim::unknown(&simulation.notes().unknown(), "note: "));
    out
}

/// Whether any CUDA call was.
fn seen(outcome: &Outcome) -> bool {
    let mut processes = outcome.session.processes.iter();
    processes.any(|process| process.events() > 0)
}

/// What is said at the end.
pub(crate) fn report(outcome: &Outcome) -> String {
    let session = &outcome.session;
    let mut out = if seen(outcome) {
        show::summary::summary(
            session,
            &leaks(session),
            outcome.capture.as_deref(),
            Style::of(&io::stderr()),
        )
    } else {
        let why = if outcome.failed {
            "no CUDA call was seen before the program ended with an error: see what it said above"
        } else {
            "no CUDA call was seen: the program made none, or it drops LD_PRELOAD (a setuid or static program, a \
             container, `env -i`), or GPUMEM_MODE is off. See gpumem doctor -- CMD"
        };
        format!("gpumem: {}\n", wrap(why, 8, WIDTH))
    };
    out.push_str(&show::notes::notes(session));
    out
}
