//! `gpumem run`: runs a program under the shim, records it, and sums up.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use gpumem_collector::insight::leaks::leaks;

use crate::run::{Job, Outcome, run as record};
use crate::show::WIDTH;
use crate::show::colour::Style;
use crate::show::text::wrap;
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

Examples:
  gpumem run -- python train.py
  gpumem run -o run-%h-%r.gpumem -- torchrun --nproc-per-node 8 train.py")]
pub(crate) struct RunArguments {
    /// Where to keep the recording
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Wait also for processes that outlive the program
    #[arg(long)]
    wait: bool,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    let job = Job {
        command: arguments.command.clone(),
        environment: Vec::new(),
        output: arguments.output.clone(),
        wait: arguments.wait,
    };
    let outcome = record(&job)?;
    show::say(&report(&outcome));
    Ok(outcome.status)
}

/// What is said at the end.
pub(crate) fn report(outcome: &Outcome) -> String {
    let session = &outcome.session;
    let seen = session.processes.iter().any(|process| process.events() > 0);
    let mut out = if seen {
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
             container, `env -i`), or GPUMEM_MODE is off"
        };
        format!("gpumem: {}\n", wrap(why, 8, WIDTH))
    };
    out.push_str(&show::notes::notes(session));
    out
}
