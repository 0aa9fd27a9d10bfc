//! A simulated machine for a program: which device, where its libraries come from, what it noted.
//!
//! [`Machine`] is what a person asks for, [`Simulation`] a folder with NVIDIA's names on our libraries and the variables that
//! lead a program there. Its children inherit them and share the machine's memory. [`notes`] is what the simulated driver says
//! afterwards about what could not be known, [`report`] what all of it means, [`search`] the same over several values.

mod libraries;
pub(crate) mod machine;
pub(crate) mod notes;
pub(crate) mod patience;
pub(crate) mod report;
pub(crate) mod search;

use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;

use anyhow::{Context, Result};

use crate::run::places::PrivateFolder;
pub(crate) use libraries::driver;
use libraries::{Library, libraries};
pub(crate) use machine::{Machine, SmallCopies};
use notes::Notes;
use patience::Patience;

/// A simulated machine that is there, as long as this value is.
pub(crate) struct Simulation {
    folder: PrivateFolder,
    libraries: Vec<Library>,
    machine: Machine,
    small_copies: SmallCopies,
}

impl Simulation {
    /// Makes the folder.
    pub(crate) fn make(machine: Machine, small_copies: SmallCopies) -> Result<Self> {
        let libraries = libraries()?;
        let folder = PrivateFolder::make("gpumem-sim")?;
        let inside = |name: &str| folder.path().join(name);
        for name in ["lib", "notes"] {
            let made = DirBuilder::new().mode(0o700).create(inside(name));
            made.with_context(|| format!("{} cannot be made", inside(name).display()))?;
        }
        for library in &libraries {
            link(&library.file, &inside("lib").join(library.name))?;
        }
        let ledger = inside("machine");
        File::create(&ledger).with_context(|| format!("{} cannot be made", ledger.display()))?;
        Ok(Self {
            folder,
            libraries,
            machine,
            small_copies,
        })
    }

    /// The variables that lead a program to the machine.
    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let folder = self.folder.path();
        let machine = &self.machine;
        vec![
            (
                "LD_LIBRARY_PATH".into(),
                search_path(&folder.join("lib"), "LD_LIBRARY_PATH"),
            ),
            ("GPUMEM_SIM_DEVICE".into(), machine.device.key.into()),
            (
                "GPUMEM_SIM_DEVICES".into(),
                machine.count.to_string().into(),
            ),
            (
                "GPUMEM_SIM_MEMORY".into(),
                machine.memory_bytes.to_string().into(),
            ),
            ("GPUMEM_SIM_MACHINE".into(), folder.join("machine").into()),
            (
                "GPUMEM_SIM_NOTES".into(),
                folder.join("notes").join("%p").into(),
            ),
            (
                "GPUMEM_SIM_SMALL_D2H".into(),
                self.small_copies.zeroed_bytes.to_string().into(),
            ),
        ]
    }

    /// What is to be preloaded, so that whoever asks for NVIDIA's libraries later, from wherever, is given ours: PyTorch's own
    /// carry a search path that comes before `LD_LIBRARY_PATH`, and so may the interpreter (Conda's does), which rules out bare
    /// names. Each file once: the stubs take their other names by themselves.
    pub(crate) fn preload(&self) -> Vec<OsString> {
        let folder = self.folder.path().join("lib");
        let mut files = HashSet::new();
        self.libraries
            .iter()
            .filter(|library| files.insert(&library.file))
            .map(|library| folder.join(library.name).into())
            .collect()
    }

    /// Says something when the program goes on without need.
    pub(crate) fn patience(&self) -> Patience {
        Patience::over(self.folder.path().join("notes"))
    }

    /// What the simulated driver noted in all processes.
    pub(crate) fn notes(&self) -> Notes {
        Notes::read(&self.folder.path().join("notes"))
    }

    /// The machine.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// A folder that only we may enter.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes the machine new: nobody holds memory, nothing is noted.
    pub(crate) fn renew(&mut self, machine: Machine) -> Result<()> {
        self.machine = machine;
        let ledger = self.folder.path().join("machine");
        // A process that lives on keeps the old file.
        fs::remove_file(&ledger)
            .and_then(|()| File::create(&ledger).map(drop))
            .with_context(|| format!("{} cannot be made anew", ledger.display()))?;
        let notes = self.folder.path().join("notes");
        fs::remove_dir_all(&notes)
            .and_then(|()| DirBuilder::new().mode(0o700).create(&notes))
            .with_context(|| format!("{} cannot be made anew", notes.display()))
    }
}

/// Gives a library a name.
pub(crate) fn link(library: &Path, name: &Path) -> Result<()> {
    symlink(library, name).with_context(|| format!("{} cannot be made", name.display()))
}

/// A folder before what is in the user's own search path.
pub(crate) fn search_path(folder: &Path, variable: &str) -> OsString {
    let mut path = folder.as_os_str().to_owned();
    if let Some(own) = env::var_os(variable).filter(|own| !own.is_empty()) {
        path.push(":");
        path.push(own);
    }
    path
}
