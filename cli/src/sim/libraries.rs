//! The simulator's libraries, and the names under which programs look for NVIDIA's.

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};

use crate::run::places::{beside, looked};

/// The names, one a row, with the library that stands for each.
const NAMES: &str = include_str!("../../../sim/stubs/names.txt");
/// The simulated driver's file.
const DRIVER: &str = "libgpumem_sim_driver.so";

/// A library under one of NVIDIA's names.
pub(super) struct Library {
    /// NVIDIA's name.
    pub(super) name: &'static str,
    /// Our file.
    pub(super) file: PathBuf,
}

/// All of them.
pub(super) fn libraries() -> Result<Vec<Library>> {
    rows()
        .map(|(name, file)| {
            Ok(Library {
                name,
                file: find(file)?,
            })
        })
        .collect()
}

/// The simulated driver.
pub(crate) fn driver() -> Result<PathBuf> {
    find(DRIVER)
}

/// Name and file of each row.
fn rows() -> impl Iterator<Item = (&'static str, &'static str)> {
    NAMES.lines().filter_map(|line| {
        let mut fields = line.split('#').next()?.split_whitespace();
        Some((fields.next()?, fields.next()?))
    })
}

/// One of the simulator's files: in `GPUMEM_SIM` (the driver's file, or the folder of all), else beside gpumem.
fn find(name: &str) -> Result<PathBuf> {
    if let Some(named) = env::var_os("GPUMEM_SIM").filter(|value| !value.is_empty()) {
        let named = PathBuf::from(named);
        let file = if named.is_dir() {
            named.join(name)
        } else if name == DRIVER {
            named
        } else {
            named.with_file_name(name)
        };
        return file.canonicalize().with_context(|| {
            format!(
                "GPUMEM_SIM leads to {}, which is not there. Set it to the folder of {name}, or unset it",
                file.display()
            )
        });
    }
    beside(name).ok_or_else(|| {
        anyhow!(
            "{name}, a part of the simulator, was not found{}. Install it beside gpumem, or set GPUMEM_SIM to its folder",
            looked(name)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::rows;

    #[test]
    fn the_names_that_every_program_needs_are_there() {
        let has = |name: &str| rows().filter(|(known, _)| *known == name).count() == 1;
        for name in ["libcuda.so.1", "libcudart.so.13", "libnvidia-ml.so.1"] {
            assert!(has(name), "{name}");
        }
        for (name, file) in rows() {
            assert!(name.contains(".so"), "{name}");
            assert!(file.starts_with("libgpumem_sim_"), "{file}");
        }
    }
}
