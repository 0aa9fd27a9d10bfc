//! `gpumem`: who holds the GPU memory of a program, since when, from which line, and is it growing.
//!
//! One verb, one file, under [`verb`]; [`source`] finds what a verb reads, [`show`] prints it. Exit status: 0 done; 1 the report
//! cannot be written; 2 usage; 3 the source cannot be read; `run` and `demo` end with their program's own, or with 125 to 127
//! where it could not be run; `sim` is 0 where the program fits, 1 where it does not, 4 where that cannot be told; `doctor` is 1
//! where a problem was found, `collect` where it cannot listen.
#![forbid(unsafe_code)]

mod doctor;
mod run;
mod show;
mod sim;
mod source;
mod verb;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Who holds your GPU memory, since when, from which line, and is it growing.
#[derive(Parser)]
#[command(name = "gpumem", version, max_term_width = 80, after_help = AFTER)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

const AFTER: &str = "\
Examples:
  gpumem run -- python train.py     record a program, then print a summary
  gpumem leaks                      what leaks in the newest recording
  gpumem leaks run.gpumem --json    the same of a file, for machines
  gpumem demo                       see it work, without a GPU
  gpumem sim -- python train.py     will it fit? a dry run without a GPU";

#[derive(Subcommand)]
enum Verb {
    /// Run a program and record its GPU memory
    Run(verb::run::RunArguments),
    /// What leaks, at which line, since when
    Leaks(verb::leaks::LeaksArguments),
    /// Record many programs as they come and go
    Collect(verb::collect::CollectArguments),
    /// The processes of a recording
    Ps(verb::ps::PsArguments),
    /// The largest live blocks: whose, since when
    Blocks(verb::blocks::BlocksArguments),
    /// Run a small leaking program on a simulated GPU and explain it
    Demo(verb::demo::DemoArguments),
    /// Will it fit? A dry run on a simulated GPU
    Sim(verb::sim::SimArguments),
    /// Why nothing is seen, with the mend
    Doctor(verb::doctor::DoctorArguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(arguments) => verb::run::run(&arguments),
        Verb::Leaks(arguments) => verb::leaks::leaks(&arguments),
        Verb::Collect(arguments) => verb::collect::collect(&arguments),
        Verb::Blocks(arguments) => verb::blocks::blocks(&arguments),
        Verb::Ps(arguments) => verb::ps::ps(&arguments),
        Verb::Demo(arguments) => verb::demo::demo(&arguments),
        Verb::Sim(arguments) => verb::sim::sim(&arguments),
        Verb::Doctor(arguments) => verb::doctor::doctor(&arguments),
    };
    done.unwrap_or_else(|failure| {
        let cause = show::text::clean(&format!("{:#}", failure.error));
        show::say(&format!("gpumem: {cause}\n"));
        ExitCode::from(failure.status)
    })
}

/// Why a verb gave up, and with which status.
struct Failure {
    status: u8,
    error: anyhow::Error,
}

impl Failure {
    /// The verb could not do what it is for.
    const FAILED: u8 = 1;
    /// The command line is wrong.
    const USAGE: u8 = 2;
    /// The source cannot be read.
    const SOURCE: u8 = 3;
    /// `run` itself failed before its program ran, as with `env` and `nohup`.
    const BEFORE_RUN: u8 = 125;
    /// The program is there but cannot be run.
    const NOT_EXECUTABLE: u8 = 126;
    /// There is no such program.
    const NOT_FOUND: u8 = 127;

    fn with(status: u8) -> impl FnOnce(anyhow::Error) -> Self {
        move |error| Self { status, error }
    }
}
