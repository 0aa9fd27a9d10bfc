//! Where things are: the shim, the private folder of a run, the capture and its name.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use gpumem_collector::CollectorError;
use gpumem_collector::ingest::capture::CaptureWriter;
use gpumem_collector::ingest::session::spool_places;

/// The shim's file.
const SHIM: &str = "libgpumemshim.so";
/// The name of a capture where the user gives none.
pub(crate) const NAME: &str = "gpumem.%h.%p.gpumem";
/// Numbers that are tried behind a name that is taken.
const NUMBERS: u32 = 10_000;
/// Bytes that a socket's path may have, with the zero at its end (`sun_path` in `sys/un.h`).
const SOCKET_PATH: usize = 108;

/// A folder that only we may enter, gone with this value.
pub(crate) struct PrivateFolder(PathBuf);

impl PrivateFolder {
    /// Makes one under the runtime directory, else `TMPDIR`, else `/tmp`.
    pub(crate) fn make(name: &str) -> Result<Self> {
        let named = |variable: &str| {
            env::var_os(variable)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let parents = [
            named("XDG_RUNTIME_DIR"),
            named("TMPDIR"),
            Some(PathBuf::from("/tmp")),
        ];
        let mut why = Vec::new();
        for parent in parents.into_iter().flatten() {
            match Self::under(&parent, name) {
                Ok(folder) => return Ok(folder),
                Err(error) => why.push(format!("{}: {error:#}", parent.display())),
            }
        }
        bail!(
            "no private folder can be made ({}). Set TMPDIR to a folder that you may write",
            why.join("; ")
        )
    }

    fn under(parent: &Path, name: &str) -> Result<Self> {
        for number in 0..100 {
            let path = parent.join(format!("{name}-{}-{number}", std::process::id()));
            if path.as_os_str().len() + "/collector.sock".len() >= SOCKET_PATH {
                bail!("its path is too long for a socket");
            }
            // A folder that is there already may be another's: it is never taken over.
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error.into()),
            }
        }
        bail!("all names are taken")
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The shim as `LD_PRELOAD` wants it.
pub(crate) fn shim() -> Result<OsString> {
    let path = match env::var_os("GPUMEM_SHIM").filter(|value| !value.is_empty()) {
        Some(named) => Path::new(&named).canonicalize().with_context(|| {
            format!(
                "GPUMEM_SHIM names {}, which is not there. Set it to {SHIM}, or unset it",
                named.to_string_lossy()
            )
        })?,
        None => beside(SHIM).ok_or_else(|| {
            anyhow!(
                "the recorder {SHIM} was not found{}. Install it beside gpumem, or set GPUMEM_SHIM to it",
                looked(SHIM)
            )
        })?,
    };
    // The dynamic loader splits LD_PRELOAD at both and knows no quoting.
    if path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|byte| matches!(byte, b' ' | b':'))
    {
        bail!(
            "{} cannot be preloaded: its path has a space or a colon. Put {SHIM} elsewhere and set GPUMEM_SHIM to it",
            path.display()
        );
    }
    Ok(path.into_os_string())
}

/// A file that is installed with gpumem.
pub(crate) fn beside(name: &str) -> Option<PathBuf> {
    candidates(name).into_iter().find(|path| path.is_file())
}

/// The folders where [`beside`] looked, for an error: ` (in A, B)`.
pub(crate) fn looked(name: &str) -> String {
    let folders: Vec<String> = candidates(name)
        .iter()
        .filter_map(|path| path.parent())
        .map(|folder| folder.display().to_string())
        .collect();
    if folders.is_empty() {
        String::new()
    } else {
        format!(" (in {})", folders.join(", "))
    }
}

fn candidates(name: &str) -> Vec<PathBuf> {
    let Ok(program) = env::current_exe().and_then(|path| path.canonicalize()) else {
        return Vec::new();
    };
    let Some(folder) = program.parent() else {
        return Vec::new();
    };
    let mut folders = vec![folder.to_owned()];
    if let Some(prefix) = folder.parent() {
        folders.push(prefix.join("lib"));
        folders.push(prefix.join("lib/gpumem"));
    }
    folders.iter().map(|folder| folder.join(name)).collect()
}

/// Creates the capture: the user's own name, else one in the first usual place that can be written. Says whether the name
/// had to be changed because it was taken.
pub(super) fn capture(output: Option<&Path>) -> Result<(CaptureWriter, bool)> {
    if let Some(output) = output {
        let path = PathBuf::from(expand(&output.to_string_lossy(), variable));
        if path.is_dir() {
            return create(&path.join(expand(NAME, variable)));
        }
        return create(&path);
    }
    let mut why = Vec::new();
    for place in spool_places() {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&place)
            .map_err(anyhow::Error::from)
            .and_then(|()| create(&place.join(expand(NAME, variable))));
        match made {
            // Nobody chose the default name: a number behind it needs no word.
            Ok((writer, _)) => return Ok((writer, false)),
            Err(error) => why.push(format!("{}: {error:#}", place.display())),
        }
    }
    bail!(
        "no place for the recording ({}). Give one with -o FILE, or set GPUMEM_DIR",
        why.join("; ")
    )
}

/// Creates a capture of this name, or of that name with the first number behind it that is free, and says whether it has one.
pub(crate) fn create(path: &Path) -> Result<(CaptureWriter, bool)> {
    for number in 0..NUMBERS {
        let name = numbered(path, number);
        match CaptureWriter::create(&name) {
            Ok(writer) => return Ok((writer, number > 0)),
            Err(CollectorError::Exists { .. }) => {}
            Err(error) => {
                return Err(error)
                    .context("the recording cannot be written: give another place with -o FILE");
            }
        }
    }
    bail!("{} and {NUMBERS} names like it are taken", path.display())
}

/// `run.gpumem`, `run.1.gpumem`, `run.2.gpumem`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// A pattern with its letters filled in; an unknown one stays as it is.
pub(crate) fn expand(pattern: &str, value: impl Fn(char) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = pattern.chars();
    while let Some(character) = rest.next() {
        if character != '%' {
            out.push(character);
            continue;
        }
        match rest.next() {
            Some('%') => out.push('%'),
            Some(letter) => match value(letter) {
                // A value is a part of a name, never a folder.
                Some(value) => out.push_str(&value.replace('/', "_")),
                None => out.extend(['%', letter]),
            },
            None => out.push('%'),
        }
    }
    out
}

/// What a letter of a pattern stands for.
fn variable(letter: char) -> Option<String> {
    let first = |names: &[&str]| names.iter().find_map(|name| env::var(name).ok());
    match letter {
        'h' => Some(
            rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        ),
        'p' => Some(std::process::id().to_string()),
        'r' => Some(first(&["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"]).unwrap_or("0".into())),
        'j' => Some(first(&["SLURM_JOB_ID", "TORCHELASTIC_RUN_ID"]).unwrap_or("0".into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_filled_in() {
        let value = |letter| match letter {
            'h' => Some("a/b".into()),
            'p' => Some("7".into()),
            _ => None,
        };
        assert_eq!(
            expand("x-%h-%p-%%-%q.gpumem%", value),
            "x-a_b-7-%-%q.gpumem%"
        );
    }

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.gpumem");
        let (first, renamed) = create(&path).unwrap();
        assert!(!renamed && first.path() == path);
        let (second, renamed) = create(&path).unwrap();
        assert!(renamed);
        assert_eq!(second.path(), folder.path().join("run.1.gpumem"));
    }

    #[test]
    fn a_private_folder_is_ours_alone_and_goes() {
        use std::os::unix::fs::MetadataExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::under(parent.path(), "run").unwrap();
        let other = PrivateFolder::under(parent.path(), "run").unwrap();
        assert_ne!(folder.path(), other.path());
        let path = folder.path().to_owned();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        drop(folder);
        assert!(!path.exists());
    }
}
