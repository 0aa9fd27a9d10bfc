//! What keeps the shim out of a program, each with its sentence and its mend.

use std::ffi::OsString;
use std::path::PathBuf;

use super::elf::Architecture;
use super::launcher::Launcher;
use super::privilege::Privilege;
use super::{Check, folder};

/// What is in the way.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// There is no such program.
    NotFound {
        /// As it was called.
        name: OsString,
    },
    /// It has no execute bit, or not for this user.
    NotExecutable {
        /// Its file.
        file: PathBuf,
    },
    /// It is a folder.
    Folder {
        /// The folder.
        file: PathBuf,
    },
    /// Neither an ELF file nor a script with a `#!` line.
    NotAProgram {
        /// Its file.
        file: PathBuf,
    },
    /// It cannot be looked at.
    Unreadable {
        /// Its file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// What should run it is not there.
    NoInterpreter {
        /// The program or script.
        file: PathBuf,
        /// What it names.
        interpreter: PathBuf,
    },
    /// Scripts that run scripts without an end.
    TooDeep,
    /// It is for another machine.
    Architecture {
        /// Its file.
        file: PathBuf,
        /// For which.
        architecture: Architecture,
    },
    /// It has no dynamic loader.
    Static {
        /// Its file.
        file: PathBuf,
    },
    /// Its dynamic loader is musl's.
    Musl {
        /// Its file.
        file: PathBuf,
    },
    /// It runs with rights that its user has not.
    Privileged {
        /// Its file.
        file: PathBuf,
        /// Which.
        privilege: Privilege,
    },
    /// `env` takes `LD_PRELOAD` away.
    Cleared,
    /// It starts the program where our environment does not lead.
    Launcher(&'static Launcher),
}

impl Obstacle {
    /// What is found: a sentence without an end mark.
    pub(super) fn found(&self) -> String {
        match self {
            Self::NotFound { name } => {
                let name = name.to_string_lossy();
                if name.contains('/') {
                    format!("{name} was not found: there is no such file")
                } else {
                    format!("{name} was not found: no folder in PATH has it")
                }
            }
            Self::NotExecutable { file } => format!("{} may not be executed", file.display()),
            Self::Folder { file } => format!("{} is a folder", file.display()),
            Self::NotAProgram { file } => format!(
                "{} is neither a program nor a script with a #! line",
                file.display()
            ),
            Self::Unreadable { file, why } => {
                format!("{} cannot be looked at: {why}", file.display())
            }
            Self::NoInterpreter { file, interpreter } => format!(
                "{} is to be run by {}, which is not there",
                file.display(),
                interpreter.display()
            ),
            Self::TooDeep => "the scripts call one another without an end".into(),
            Self::Architecture { file, architecture } => format!(
                "{} is a program for {architecture}, the recorder one for {}",
                file.display(),
                Architecture::OURS
            ),
            Self::Static { file } => format!(
                "{} is a static program: no LD_PRELOAD reaches it",
                file.display()
            ),
            Self::Musl { file } => format!(
                "{} is a program for musl, the recorder one for glibc",
                file.display()
            ),
            Self::Privileged { file, privilege } => {
                let how = match privilege {
                    Privilege::Setuid { owner } => format!("is setuid to user {owner}"),
                    Privilege::Setgid { group } => format!("is setgid to group {group}"),
                    Privilege::Capabilities => "has file capabilities".into(),
                };
                format!("{} {how}: the loader drops LD_PRELOAD", file.display())
            }
            Self::Cleared => "env takes LD_PRELOAD away from the program".into(),
            Self::Launcher(launcher) => format!("{} {}", launcher.name, launcher.why),
        }
    }

    /// What to do: a sentence without an end mark.
    pub(super) fn mend(&self) -> String {
        match self {
            Self::NotFound { .. } => {
                "Check the name, activate its environment, or give its whole path".into()
            }
            Self::NotExecutable { .. } => {
                "chmod +x it, or name what runs it, as in python train.py".into()
            }
            Self::Folder { .. } => "Name a program in it".into(),
            Self::NotAProgram { .. } => {
                "Begin it with a #! line, or name what runs it, as in sh FILE".into()
            }
            Self::Unreadable { .. } => "Make it readable, or copy it anew".into(),
            Self::NoInterpreter { .. } => {
                "Install it, or build the program or its environment anew".into()
            }
            Self::TooDeep => "Name the program itself".into(),
            Self::Architecture { .. } => {
                "Run a build of it for this machine, or gpumem's build for that one".into()
            }
            Self::Static { .. } => {
                "Link it dynamically: without -static (a static CUDA runtime is fine)".into()
            }
            Self::Musl { .. } => "Run it in an image with glibc 2.34 or later".into(),
            Self::Privileged { .. } => {
                "Record a copy of it: cp drops the bit and the capabilities".into()
            }
            Self::Cleared => "Leave -i, -u LD_PRELOAD or LD_PRELOAD= out of the line".into(),
            Self::Launcher(_) => "Start gpumem on the far side, in front of the program".into(),
        }
    }

    /// Whether the program would run, unseen: then `gpumem run` says so, and else it fails by itself.
    pub(super) fn hides(&self) -> bool {
        matches!(
            self,
            Self::Architecture { .. }
                | Self::Static { .. }
                | Self::Musl { .. }
                | Self::Privileged { .. }
                | Self::Cleared
                | Self::Launcher(_)
        )
    }

    /// The same as a row of the report.
    pub(super) fn check(&self) -> Check {
        let check = Check::fail("program", self.found(), self.mend());
        match self {
            Self::Launcher(launcher) => check.with_line(launcher.line(&folder())),
            _ => check,
        }
    }
}
