//! Runs a program under the shim with a private collector beside it.
//!
//! The collector is a thread of ours on a socket in a folder that nobody else may enter; the program gets the shim through
//! `LD_PRELOAD`. [`signals`] passes on what is meant for the program, [`places`] finds the shim and names the capture.

pub(crate) mod places;
mod signals;
mod watch;

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
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
use watch::Watch;

/// How long the collector listens on when nothing more comes from processes that outlive the program.
const QUIET: Duration = Duration::from_millis(500);

/// What to run.
pub(crate) struct Job {
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Variables that the program gets besides ours.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Libraries that are preloaded behind the shim and before the user's own, as `LD_PRELOAD` wants them.
    pub(crate) preload: Vec<OsString>,
    /// Whether and where a capture is kept.
    pub(crate) recording: Recording,
    /// Where what the program prints goes.
    pub(crate) output: Output,
    /// How long the program may run; then it is ended.
    pub(crate) timeout: Option<Duration>,
    /// Whether to wait for processes that outlive the program.
    pub(crate) wait: bool,
}

/// Whether and where a capture is kept.
pub(crate) enum Recording {
    /// In the usual place.
    Usual,
    /// At a path, a pattern.
    At(PathBuf),
    /// None is kept.
    None,
}

impl Recording {
    /// At a path, if one is named.
    pub(crate) fn at(path: Option<PathBuf>) -> Self {
        path.map_or(Self::Usual, Self::At)
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::At(path) => Some(path),
            Self::Usual | Self::None => None,
        }
    }
}

/// Where what a program prints goes.
pub(crate) enum Output {
    /// Where ours goes.
    Inherited,
    /// All of it to our standard error.
    ToStderr,
    /// All of it to a file; it has no input then.
    File(File),
}

/// What came of it.
pub(crate) struct Outcome {
    /// The program's own status, 128 and the signal if one ended it.
    pub(crate) status: ExitCode,
    /// The same as a number.
    pub(crate) code: Option<i32>,
    /// Whether it was ended because its time was over.
    pub(crate) timed_out: bool,
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
    let watch = job.timeout.map(|timeout| Watch::over(child.id(), timeout));
    await_end(&child);
    let timed_out = watch.is_some_and(Watch::end);
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
    if finished.session.processes.is_empty() && job.recording.path().is_none() {
        // Nobody asked for a recording of nothing; it would hide the one before as the newest.
        discard(capture.take());
    }
    let status = status?;
    Ok(Outcome {
        status: exit_code(status),
        code: code(status),
        timed_out,
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
    if matches!(job.recording, Recording::None) {
        return Ok(None);
    }
    match places::capture(job.recording.path()) {
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
        Err(error) if job.recording.path().is_some() => Err(error),
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
        return Err(Failure::with(Failure::USAGE)(anyhow!(
            "no program was named: gpumem run -- CMD"
        )));
    };
    let mut preload = shim;
    for library in &job.preload {
        preload.push(":");
        preload.push(library);
    }
    if let Some(own) = env::var_os("LD_PRELOAD").filter(|own| !own.is_empty()) {
        preload.push(":");
        preload.push(own);
    }
    let mut command = Command::new(program);
    direct(&mut command, &job.output)
        .context("the program's output cannot be led away")
        .map_err(Failure::with(Failure::BEFORE_RUN))?;
    command
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

/// Leads what a program prints to where it is wanted.
fn direct(command: &mut Command, output: &Output) -> io::Result<()> {
    match output {
        Output::Inherited => {}
        Output::ToStderr => drop(command.stdout(Stdio::from(io::stderr()))),
        Output::File(file) => {
            command
                .stdin(Stdio::null())
                .stdout(file.try_clone()?)
                .stderr(file.try_clone()?);
        }
    }
    Ok(())
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
    let code = code(status).and_then(|code| u8::try_from(code & 0xff).ok());
    ExitCode::from(code.unwrap_or(1))
}

/// A status as a shell tells it.
fn code(status: ExitStatus) -> Option<i32> {
    status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal))
}
