//! Runs a program under the shim with a private collector beside it.
//!
//! The collector is a thread of ours on a socket in a folder that nobody else may enter; the program gets the shim through
//! `LD_PRELOAD`. [`signals`] passes on what is meant for the program, [`places`] finds the shim and names the capture.

pub(crate) mod places;
mod signals;

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use gpumem_collector::ingest::capture::CaptureWriter;
use gpumem_collector::ingest::server::{FinishPolicy, Running, Server, raise_descriptor_limit};
use gpumem_collector::model::Session;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::show::text::clean;
use crate::{Failure, show};
use places::PrivateFolder;
use signals::Forwarding;

/// How long the collector listens on when nothing more comes from processes that outlive the program.
const QUIET: Duration = Duration::from_millis(500);

/// What to run.
pub(crate) struct Job {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Variables that the program gets besides ours.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where the capture goes, as a pattern; the usual place if `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to wait for processes that outlive the program.
    pub(crate) wait: bool,
}

/// What came of it.
pub(crate) struct Outcome {
    /// The program's own status, 128 and the signal if one ended it.
    pub(crate) status: ExitCode,
    /// Whether that is not 0.
    pub(crate) failed: bool,
    /// All that was recorded.
    pub(crate) session: Session,
    /// Where it was kept.
    pub(crate) capture: Option<PathBuf>,
}

/// Runs a program to its end and records it.
pub(crate) fn run(job: &Job) -> Result<Outcome, Failure> {
    let before = Failure::BEFORE_RUN;
    let shim = places::shim().map_err(Failure::with(before))?;
    let folder = PrivateFolder::make("gpumem-run").map_err(Failure::with(before))?;
    let capture = open_capture(job).map_err(Failure::with(before))?;
    let running = listen(&folder, capture).map_err(Failure::with(before))?;
    // From here on a signal is the program's affair.
    let forwarding = Forwarding::begin()
        .context("signals cannot be passed on to the program")
        .map_err(Failure::with(before))?;
    let mut child = match spawn(job, shim, &running) {
        Ok(child) => child,
        Err(failure) => {
            discard(running.finish(FinishPolicy::Quiet(Duration::ZERO)).capture);
            return Err(failure);
        }
    };
    // The program is there with the limits that it was given; what follows is for us alone.
    raise_descriptor_limit();
    forwarding.to(child.id());
    await_end(&child);
    // Its process id stays taken until nothing is passed on any more.
    forwarding.end();
    let status = child
        .wait()
        .context("the program's end cannot be seen")
        .map_err(Failure::with(before));
    let finished = running.finish(if job.wait {
        FinishPolicy::WaitForAll
    } else {
        FinishPolicy::Quiet(QUIET)
    });
    let mut capture = finished.capture;
    if finished.session.processes.is_empty() && job.output.is_none() {
        // Nobody asked for a recording of nothing; it would hide the one before as the newest.
        discard(capture.take());
    }
    let status = status?;
    Ok(Outcome {
        status: exit_code(status),
        failed: !status.success(),
        session: finished.session,
        capture,
    })
}

/// Removes a recording of nothing.
fn discard(capture: Option<PathBuf>) {
    if let Some(path) = capture {
        // One that cannot be removed does no harm.
        let _ = fs::remove_file(path);
    }
}

/// The capture to write. Without a place for it the program runs all the same, unless the user named one.
fn open_capture(job: &Job) -> Result<Option<CaptureWriter>> {
    match places::capture(job.output.as_deref()) {
        Ok((writer, renamed)) => {
            if renamed {
                let path = writer.path().display().to_string();
                show::say(&format!(
                    "gpumem: that name is taken; recording to {}\n",
                    clean(&path)
                ));
            }
            Ok(Some(writer))
        }
        Err(error) if job.output.is_some() => Err(error),
        Err(error) => {
            show::say(&format!(
                "gpumem: nothing is kept of this run: {}\n",
                clean(&format!("{error:#}"))
            ));
            Ok(None)
        }
    }
}

fn listen(folder: &PrivateFolder, capture: Option<CaptureWriter>) -> Result<Running> {
    let server = Server::bind(&folder.path().join("collector.sock"))?;
    Ok(server.start(capture)?)
}

fn spawn(job: &Job, shim: OsString, running: &Running) -> Result<Child, Failure> {
    let Some((program, arguments)) = job.command.split_first() else {
        return Err(Failure::with(2)(anyhow!(
            "no program was named: gpumem run -- CMD"
        )));
    };
    let mut preload = shim;
    if let Some(own) = env::var_os("LD_PRELOAD").filter(|own| !own.is_empty()) {
        preload.push(":");
        preload.push(own);
    }
    Command::new(program)
        .args(arguments)
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .env("LD_PRELOAD", preload)
        .env("GPUMEM_SOCKET", running.path())
        .spawn()
        .map_err(|error| {
            let name = program.to_string_lossy().into_owned();
            if error.kind() == ErrorKind::NotFound {
                Failure::with(Failure::NOT_FOUND)(anyhow!(
                    "{name} was not found: no such file, and none in PATH. Check its name"
                ))
            } else {
                Failure::with(Failure::NOT_EXECUTABLE)(anyhow!("{name} cannot be run: {error}"))
            }
        })
}

/// Waits until the program has ended, and leaves its status to be taken.
fn await_end(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(
            waitid(WaitId::Pid(pid), ended),
            Err(rustix::io::Errno::INTR)
        ) {}
    }
}

/// The program's status as our own.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
        .and_then(|code| u8::try_from(code & 0xff).ok());
    ExitCode::from(code.unwrap_or(1))
}
