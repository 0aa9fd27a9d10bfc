//! `gpumem demo`: a small leaking program on a simulated GPU, recorded and explained. Needs no GPU and no Python.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use clap::Args;

use crate::run::places::{PrivateFolder, beside, looked};
use crate::run::{Job, run};
use crate::show::colour::Style;
use crate::show::heading::now_ns;
use crate::show::leaks::Shown;
use crate::verb::leaks::{TOP, text};
use crate::{Failure, show};

/// The simulated driver's file.
const DRIVER: &str = "libgpumem_sim_driver.so";
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
        environment: vec![("LD_LIBRARY_PATH".into(), search_path(&folder))],
        output: arguments.output.clone(),
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
    let link = folder.path().join("libcuda.so.1");
    symlink(&driver, &link).with_context(|| format!("{} cannot be made", link.display()))?;
    Ok((folder, program))
}

/// The simulated driver: `GPUMEM_SIM` (the file, or its folder), else beside gpumem.
fn driver() -> Result<PathBuf> {
    if let Some(named) = env::var_os("GPUMEM_SIM").filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        let file = if named.is_dir() {
            named.join(DRIVER)
        } else {
            named
        };
        return file.canonicalize().with_context(|| {
            format!(
                "GPUMEM_SIM names {}, which is not there. Set it to the folder of {DRIVER}, or unset it",
                file.display()
            )
        });
    }
    beside(DRIVER).ok_or_else(|| {
        anyhow!(
            "the simulated driver {DRIVER} was not found{}. Install it beside gpumem, or set GPUMEM_SIM to its folder",
            looked(DRIVER)
        )
    })
}

/// The folder before what is in the user's own search path.
fn search_path(folder: &PrivateFolder) -> OsString {
    let mut path = folder.path().as_os_str().to_owned();
    if let Some(own) = env::var_os("LD_LIBRARY_PATH").filter(|own| !own.is_empty()) {
        path.push(":");
        path.push(own);
    }
    path
}
