//! A test's own folder: the driver that its jobs find, their captures, their truth.

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output};

use gpumem_collector::ingest::session::{Source, open};
use gpumem_collector::model::Session;
use serde_json::Value;
use tempfile::TempDir;

use crate::artefacts;

/// Variables of the user's that would change what a job does.
const FOREIGN: &[&str] = &[
    "GPUMEM_MODE",
    "GPUMEM_FULL_NATIVE",
    "GPUMEM_SPOOL_LIMIT",
    "GPUMEM_SHIM",
    "GPUMEM_SIM",
    "GPUMEM_SESSION",
    "GPUMEM_SIM_FAIL",
    "GPUMEM_SIM_DEVICES",
    "GPUMEM_SIM_MEMORY",
    "GPUMEM_SIM_CONTEXT",
    "GPUMEM_SIM_DRIVER",
    "GPUMEM_SIM_DEVICE",
    "GPUMEM_SIM_MACHINE",
    "GPUMEM_SIM_NOTES",
    "CUDA_VISIBLE_DEVICES",
    "XDG_RUNTIME_DIR",
];

/// A folder of one test, gone with this value.
pub struct Place {
    folder: TempDir,
}

/// How a job ended, and what it printed.
pub struct Finished {
    /// Its status.
    pub status: ExitStatus,
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
}

impl Finished {
    /// This, if the job ended with status 0.
    #[track_caller]
    pub fn well(self) -> Self {
        assert!(
            self.status.success(),
            "{}\n{}{}",
            self.status,
            self.out,
            self.err
        );
        self
    }

    /// The standard output as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error} in\n{}{}", self.out, self.err))
    }

    /// The exit status as a shell tells it.
    pub fn code(&self) -> i32 {
        let by_signal = || self.status.signal().map(|signal| 128 + signal);
        self.status.code().or_else(by_signal).unwrap_or(-1)
    }
}

/// Runs a command to its end.
#[track_caller]
pub fn finish(command: &mut Command) -> Finished {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Finished {
        status,
        out: text(stdout),
        err: text(stderr),
    }
}

impl Place {
    /// A place whose jobs find the simulated driver.
    pub fn new() -> Self {
        Self::on(&artefacts::sim_driver())
    }

    /// A place whose jobs find this driver as `libcuda.so.1`.
    pub fn on(driver: &Path) -> Self {
        let place = Self::without_driver();
        symlink(driver, place.driver_folder().join("libcuda.so.1")).expect("a new link");
        place
    }

    /// A place whose jobs find no driver.
    pub fn without_driver() -> Self {
        let place = Self {
            folder: tempfile::tempdir().expect("a folder for temporary files"),
        };
        for folder in [place.driver_folder(), place.spool()] {
            // A spool folder that others could write to is refused, whatever the user's umask.
            let made = DirBuilder::new().mode(0o700).create(folder);
            made.expect("a new folder");
        }
        place
    }

    /// A path in the place.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where jobs look for libraries first.
    pub fn driver_folder(&self) -> PathBuf {
        self.path("driver")
    }

    /// Where preloaded jobs write their captures.
    pub fn spool(&self) -> PathBuf {
        self.path("spool")
    }

    /// The capture of [`Place::recorded`].
    pub fn capture(&self) -> PathBuf {
        self.path("run.gpumem")
    }

    /// A command that finds this place's driver and folders, without the shim.
    pub fn plain(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        for name in FOREIGN {
            command.env_remove(name);
        }
        command
            .env_remove("LD_PRELOAD")
            .env("LD_LIBRARY_PATH", self.driver_folder())
            .env("GPUMEM_DIR", self.spool())
            // Nobody listens there.
            .env("GPUMEM_SOCKET", self.path("no-collector.sock"))
            .env("GPUMEM_SIM_TRUTH", self.path("truth.%p.json"))
            .env("TMPDIR", self.folder.path())
            .env("NO_COLOR", "1");
        command
    }

    /// A job under the preloaded shim, with no collector: it writes a capture of its own.
    pub fn preloaded(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.plain(program);
        command.env("LD_PRELOAD", artefacts::shim());
        command
    }

    /// A job under `gpumem run`, recorded in [`Place::capture`]. Further arguments are the job's.
    pub fn recorded(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = self.gpumem(&["run", "-o"]);
        command.arg(self.capture()).arg("--").arg(program);
        command
    }

    /// The command line tool.
    pub fn gpumem(&self, arguments: &[&str]) -> Command {
        let mut command = self.plain(artefacts::gpumem());
        command.args(arguments).env_remove("GPUMEM_SOCKET");
        command
    }

    /// What preloaded jobs wrote, all captures in one session.
    #[track_caller]
    pub fn spooled(&self) -> Session {
        open(&Source::Directory(self.spool())).expect("captures that can be read")
    }

    /// What `gpumem run` recorded.
    #[track_caller]
    pub fn recording(&self) -> Session {
        open(&Source::File(self.capture())).expect("a capture that can be read")
    }

    /// The driver's truth of a process.
    #[track_caller]
    pub fn truth(&self, pid: u32) -> Value {
        let path = self.path(&format!("truth.{pid}.json"));
        let text = std::fs::read(&path)
            .unwrap_or_else(|error| panic!("no truth of process {pid}: {error}"));
        serde_json::from_slice(&text).expect("the driver writes JSON")
    }

    /// The names of the captures of preloaded jobs.
    pub fn spool_files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.spool()).expect("the spool folder");
        entries
            .map(|entry| entry.expect("an entry").file_name())
            .map(|name| name.to_string_lossy().into_owned())
            .collect()
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}
