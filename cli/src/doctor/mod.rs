//! Why is nothing seen? [`machine`] looks at where programs run, [`program`] at one of them; neither runs anything of it. What
//! came of running it is judged by [`seen`]. Each answer is a [`Check`], with its mend.

mod driver;
mod elf;
mod launcher;
mod loader;
mod machine;
mod obstacle;
mod privilege;
mod program;
mod python;
mod seen;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

pub(crate) use machine::machine;
pub(crate) use seen::seen;

use obstacle::Obstacle;
use privilege::User;
use program::Program;
use python::Version;

/// The schema of `gpumem doctor --json`.
pub(crate) const SCHEMA: &str = "gpumem.doctor/1";

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// Something is recorded, but less than might be.
    Warn,
    /// Nothing is recorded, or not what is wanted.
    Fail,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// What: a word.
    pub(crate) name: &'static str,
    /// Whether nothing is broken: false for [`Level::Fail`] alone.
    pub(crate) ok: bool,
    /// How it stands.
    pub(crate) level: Level,
    /// What was found, a sentence without an end mark.
    pub(crate) found: String,
    /// What to do about it, sentences without the last end mark; `None` where nothing is to be done.
    pub(crate) mend: Option<String>,
    /// A line for a shell that does it.
    pub(crate) line: Option<String>,
}

impl Check {
    /// All is well.
    pub(crate) fn ok(name: &'static str, found: String) -> Self {
        Self {
            name,
            ok: true,
            level: Level::Ok,
            found,
            mend: None,
            line: None,
        }
    }

    /// Less is recorded than might be.
    pub(crate) fn warn(name: &'static str, found: String, mend: String) -> Self {
        Self {
            level: Level::Warn,
            mend: Some(mend),
            ..Self::ok(name, found)
        }
    }

    /// A problem.
    pub(crate) fn fail(name: &'static str, found: String, mend: String) -> Self {
        Self {
            ok: false,
            level: Level::Fail,
            ..Self::warn(name, found, mend)
        }
    }

    /// A warning about which nothing is to be done.
    fn note(name: &'static str, found: String) -> Self {
        Self {
            level: Level::Warn,
            ..Self::ok(name, found)
        }
    }

    /// An error as our own are made: the cause, and in its last sentence the mend.
    fn error(name: &'static str, error: &anyhow::Error) -> Self {
        let text = format!("{error:#}");
        let (cause, mend) = text.rsplit_once(". ").unwrap_or((&text, ""));
        Self::fail(name, cause.to_owned(), mend.to_owned())
    }

    /// The same with a line for a shell.
    pub(crate) fn with_line(self, line: String) -> Self {
        Self {
            line: Some(line),
            ..self
        }
    }
}

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorReport {
    /// [`SCHEMA`].
    pub(crate) schema: &'static str,
    /// The program that was asked about, and its arguments; empty without one.
    pub(crate) command: Vec<String>,
    /// Whether it was run.
    pub(crate) ran: bool,
    /// The exit status that it had, 128 and the signal if one ended it; `None` if it was not run.
    pub(crate) status: Option<i32>,
    /// What was looked at, in order.
    pub(crate) checks: Vec<Check>,
}

impl DoctorReport {
    /// Whether a check of this name found a problem.
    pub(crate) fn has_problem(&self, name: &str) -> bool {
        let mut checks = self.checks.iter();
        checks.any(|check| check.name == name && !check.ok)
    }

    /// How many checks stand so.
    pub(crate) fn count(&self, level: Level) -> usize {
        let at_level = |check: &&Check| check.level == level;
        self.checks.iter().filter(at_level).count()
    }
}

/// What there is to know of a program before it runs. Also whether the shim gets into it.
pub(crate) fn program(command: &[OsString], shim: Option<&OsString>) -> (Vec<Check>, bool) {
    let program = match program::of(command, User::current()) {
        Ok(program) => program,
        Err(obstacle) => return (vec![obstacle.check()], false),
    };
    let mut checks = vec![described(&program)];
    // Another loader than glibc's might run the program where it is asked.
    let refusal = shim
        .filter(|_| loader::is_glibc(&program.interpreter))
        .and_then(|shim| loader::ask(&program.file, shim).ok()?.refusal);
    let enters = refusal.is_none();
    if let Some(why) = refusal {
        checks.push(machine::refused(&why));
    }
    checks.extend(program.python.as_ref().map(read));
    (checks, enters)
}

fn described(program: &Program) -> Check {
    let mut found = format!(
        "{}, dynamic, {}",
        program.file.display(),
        elf::Architecture::OURS
    );
    if !program.through.is_empty() {
        let through: Vec<String> = program
            .through
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        found.push_str(&format!(" (by {})", through.join(", ")));
    }
    Check::ok("program", found)
}

/// Whether the frames of a Python are read.
fn read(version: &Version) -> Check {
    const NAME: &str = "python";
    if version.is_read() {
        return Check::ok(NAME, format!("{version}: its frames are read"));
    }
    Check::fail(
        NAME,
        format!("{version}: its frames are not read, so that lines are native ones"),
        format!(
            "Run the program with Python {} to see its own lines",
            Version::read()
        ),
    )
}

/// One line that says beforehand why a program will not be seen as it should, for `gpumem run`.
pub(crate) fn warning(command: &[OsString]) -> Option<String> {
    let why = match program::of(command, User::current()) {
        Ok(program) => {
            let version = program.python.filter(|version| !version.is_read())?;
            format!("the frames of {version} are not read, lines will be native ones")
        }
        Err(obstacle) => {
            let is_ours = Obstacle::hides(&obstacle);
            is_ours.then(|| format!("{}, nothing of it will be seen", obstacle.found()))?
        }
    };
    Some(format!("{why}; gpumem doctor -- CMD says what to do"))
}

/// A sentence where no program finds a driver, for the end of a run in which nothing was seen.
pub(crate) fn no_driver() -> Option<String> {
    let shim = crate::run::places::shim().ok()?;
    let found = machine::driver(&shim).ok()?;
    let check = driver::library(&found, Path::new("/"));
    (check.level == Level::Fail).then_some(check.found)
}

/// Which kind of container this is, by the files that it leaves below `root`.
fn container(root: &Path) -> Option<&'static str> {
    [
        (".dockerenv", "docker"),
        ("run/.containerenv", "podman"),
        (".singularity.d", "apptainer"),
        ("var/run/secrets/kubernetes.io", "Kubernetes"),
    ]
    .into_iter()
    .find_map(|(file, kind)| root.join(file).exists().then_some(kind))
}

/// The folder where gpumem lies.
fn folder() -> PathBuf {
    let program = env::current_exe().and_then(|path| path.canonicalize());
    let folder = program
        .ok()
        .and_then(|path| Some(path.parent()?.to_owned()));
    folder.unwrap_or_else(|| "/path/to/gpumem".into())
}
