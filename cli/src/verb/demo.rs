//! `gpumem demo`: a small leaking program on a simulated GPU, recorded and explained. Needs no GPU and no Python.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;

use crate::run::places::{PrivateFolder, beside, looked};
use crate::run::{Job, Output, Recording, run};
use crate::show::colour::Style;
use crate::show::heading::now_ns;
use crate::show::leaks::Shown;
use crate::sim::{driver, link, search_path};
use crate::verb::leaks::{TOP, text};
use crate::{Failure, show};

/// The program's file.
const PROGRAM: &str = "gpumem-demo-job";

/// Run a small leaking program on a simulated GPU and explain it
#[derive(Args)]
pub(crate) struct DemoArguments {
    /// Where to keep the recording, as with `gpumem run`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the program and shows the leak report.
pub(crate) fn demo(arguments: &DemoArguments) -> Result<ExitCode, Failure> {
    let (folder, program) = prepare().map_err(Failure::with(Failure::BEFORE_RUN))?;
    let intent = "A small server on a simulated GPU; it forgets one buffer in each request.\n\n";
    show::print(intent).map_err(Failure::with(1))?;
    let outcome = run(&Job {
        command: vec![program.into()],
        environment: vec![(
            "LD_LIBRARY_PATH".into(),
            search_path(folder.path(), "LD_LIBRARY_PATH"),
        )],
        preload: Vec::new(),
        recording: Recording::at(arguments.output.clone()),
        output: Output::Inherited,
        timeout: None,
        wait: false,
    })?;
    let shown = Shown {
        top: TOP,
        all_frames: false,
    };
    let mut report = format!(
        "\n{}",
        text(&outcome.session, shown, Style::of(&io::stdout()), now_ns())
    );
    let gpumem = std::env::args_os()
        .next()
        .unwrap_or_else(|| "gpumem".into());
    let gpumem = PathBuf::from(gpumem);
    report.push_str(&format!(
        "\nThe GPU was simulated. Next, your own program:\n  {} run -- CMD\n",
        gpumem.display()
    ));
    if let Some(capture) = &outcome.capture {
        report.push_str(&format!(
            "All of it again:\n  {} leaks --frames {}\n",
            gpumem.display(),
            capture.display()
        ));
    }
    show::print(&report).map_err(Failure::with(1))?;
    Ok(outcome.status)
}

/// A folder in which the simulated driver has the name that programs look for, and the program.
fn prepare() -> Result<(PrivateFolder, PathBuf)> {
    let driver = driver()?;
    let program = beside(PROGRAM).ok_or_else(|| {
        anyhow!(
            "{PROGRAM} was not found{}. Install it beside gpumem",
            looked(PROGRAM)
        )
    })?;
    let folder = PrivateFolder::make("gpumem-demo")?;
    link(&driver, &folder.path().join("libcuda.so.1"))?;
    Ok((folder, program))
}
