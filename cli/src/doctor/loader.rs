//! What the dynamic loader would do, by its own word: with `LD_TRACE_LOADED_OBJECTS` (ld.so(8)) it lists what it loads and
//! runs nothing of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// The driver's library, as every CUDA runtime asks for it.
pub(super) const DRIVER: &str = "libcuda.so.1";

/// What the loader says of a program with the shim and the driver preloaded.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// Where it finds the driver's library.
    pub(super) driver: Option<PathBuf>,
    /// Why the shim cannot be loaded.
    pub(super) refusal: Option<String>,
}

/// Whether a dynamic loader is glibc's, by its name: `ld-linux-x86-64.so.2`, `ld-linux-aarch64.so.1`.
pub(super) fn is_glibc(loader: &Path) -> bool {
    let name = loader.file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("ld-linux")
}

/// Asks for a dynamic program of this machine; never for another, which would be run.
pub(super) fn ask(program: &Path, shim: &OsStr) -> Result<Answer> {
    let mut preload = shim.to_owned();
    preload.push(":");
    preload.push(DRIVER);
    let output = Command::new(program)
        .env("LD_TRACE_LOADED_OBJECTS", "1")
        .env("LD_PRELOAD", preload)
        .env_remove("LD_DEBUG")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("the loader cannot be asked about {}", program.display()))?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    Ok(read(&said, &shim.to_string_lossy()))
}

fn read(said: &str, shim: &str) -> Answer {
    let mut answer = Answer::default();
    for line in said.lines().map(str::trim) {
        if let Some((DRIVER, place)) = line.split_once(" => ") {
            let path = place.rsplit_once(" (0x").map_or(place, |(path, _)| path);
            answer.driver = path.starts_with('/').then(|| path.into());
        }
        let refused = line.contains(shim)
            && (line.contains("cannot be preloaded") || line.contains("not found (required by"));
        if refused && answer.refusal.is_none() {
            answer.refusal = Some(reason(line).to_owned());
        }
    }
    answer
}

/// The reason in one of the loader's two forms: `... cannot be preloaded (REASON): ignored.` and
/// `PROGRAM: LIBRARY: version `GLIBC_2.38' not found (required by SHIM)`.
fn reason(line: &str) -> &str {
    if let Some((_, rest)) = line.split_once("cannot be preloaded (") {
        return rest.split("): ignored").next().unwrap_or(rest);
    }
    let from = line.find("version `").unwrap_or(0);
    let line = &line[from..];
    line.split(" (required by").next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_loader_says_is_understood() {
        let said = "\tlinux-vdso.so.1 (0x00007ffd)\n\t/opt/libgpumemshim.so (0x00007f)\n\
                    \tlibcuda.so.1 => /usr/lib/my cuda/libcuda.so.1 (0x00007f)\n";
        let answer = read(said, "/opt/libgpumemshim.so");
        assert_eq!(
            answer.driver.as_deref(),
            Some(Path::new("/usr/lib/my cuda/libcuda.so.1"))
        );
        assert_eq!(answer.refusal, None);
    }

    #[test]
    fn a_refusal_is_told_with_its_reason() {
        let refusal = |line: &str| read(line, "/opt/s.so").refusal.unwrap();
        assert_eq!(
            refusal(
                "ERROR: ld.so: object '/opt/s.so' from LD_PRELOAD cannot be preloaded (wrong ELF class: ELFCLASS32): ignored."
            ),
            "wrong ELF class: ELFCLASS32"
        );
        assert_eq!(
            refusal("job: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /opt/s.so)"),
            "version `GLIBC_2.38' not found"
        );
        let other = "ERROR: ld.so: object 'libcuda.so.1' from LD_PRELOAD cannot be preloaded (cannot open): ignored.";
        assert_eq!(read(other, "/opt/s.so"), Answer::default());
    }
}
