//! From a command line to the program that it runs: through `PATH`, `#!` lines and wrappers such as `env`, without running
//! anything.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use super::elf::{Architecture, Head};
use super::launcher;
use super::obstacle::Obstacle;
use super::privilege::{self, User};
use super::python::Version;

/// Scripts and wrappers that may follow each other: Linux itself gives up after four scripts.
const STEPS: usize = 12;
/// Bytes of a `#!` line that Linux reads (`BINPRM_BUF_SIZE`).
const LINE_BYTES: u64 = 256;
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];

/// A wrapper that runs another program in its own place.
struct Wrapper {
    name: &'static str,
    /// Options that take a word of their own.
    with_value: &'static [&'static str],
    /// Words before the program.
    operands: usize,
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", &["-u", "--unset", "-C", "--chdir"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("nice", &["-n"], 0),
    wrapper("ionice", &["-c", "-n"], 0),
    wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    wrapper("timeout", &["-s", "-k"], 1),
];

const fn wrapper(
    name: &'static str,
    with_value: &'static [&'static str],
    operands: usize,
) -> Wrapper {
    Wrapper {
        name,
        with_value,
        operands,
    }
}

/// A program that the shim gets into.
pub(super) struct Program {
    /// Its file.
    pub(super) file: PathBuf,
    /// The dynamic loader that it names.
    pub(super) interpreter: PathBuf,
    /// The scripts and wrappers that lead to it, outermost first.
    pub(super) through: Vec<PathBuf>,
    /// Which Python it is, if it is one.
    pub(super) python: Option<Version>,
}

/// The program of a command line, or what keeps the shim out of it.
pub(super) fn of(command: &[OsString], user: User) -> Result<Program, Obstacle> {
    let mut words = command.to_vec();
    let mut through = Vec::new();
    for _ in 0..STEPS {
        if let Some(launcher) = called(&words) {
            return Err(Obstacle::Launcher(launcher));
        }
        let (file, found) = find(words.first().map_or(OsStr::new(""), OsString::as_os_str))?;
        if let Some(inner) = unwrapped(&words)? {
            through.push(file);
            words = inner;
            continue;
        }
        let head = Head::read(&file).map_err(|error| Obstacle::Unreadable {
            file: file.clone(),
            why: error.to_string(),
        })?;
        match head {
            Some(head) => return program(file, &found, &head, through, user),
            None => {
                words = scripted(&file, &words)?;
                through.push(file);
            }
        }
    }
    Err(Obstacle::TooDeep)
}

fn program(
    file: PathBuf,
    found: &Metadata,
    head: &Head,
    through: Vec<PathBuf>,
    user: User,
) -> Result<Program, Obstacle> {
    if head.architecture != Architecture::OURS {
        let architecture = head.architecture;
        return Err(Obstacle::Architecture { file, architecture });
    }
    let Some(interpreter) = &head.interpreter else {
        return Err(Obstacle::Static { file });
    };
    if interpreter.to_string_lossy().contains("ld-musl") {
        return Err(Obstacle::Musl { file });
    }
    if !interpreter.exists() {
        let interpreter = interpreter.clone();
        return Err(Obstacle::NoInterpreter { file, interpreter });
    }
    if let Some(privilege) = privilege::of(&file, found, user) {
        return Err(Obstacle::Privileged { file, privilege });
    }
    Ok(Program {
        python: Version::of(&file, head),
        interpreter: interpreter.clone(),
        file,
        through,
    })
}

/// The launcher that words call, by themselves or in a shell's `-c`.
fn called(words: &[OsString]) -> Option<&'static launcher::Launcher> {
    let of_shell = || {
        let (shell, rest) = words.split_first()?;
        let name = Path::new(shell).file_name()?.to_str()?;
        let is_option = |word: &&OsString| {
            let bytes = word.as_bytes();
            bytes.starts_with(b"-") && !bytes.starts_with(b"--") && bytes.ends_with(b"c")
        };
        let at = rest.iter().position(|word| is_option(&word))?;
        let script = rest.get(at + 1)?;
        SHELLS
            .contains(&name)
            .then(|| launcher::of_script(&script.to_string_lossy()))?
    };
    launcher::of(words).or_else(of_shell)
}

/// The file that `execvp` would run.
fn find(name: &OsStr) -> Result<(PathBuf, Metadata), Obstacle> {
    let path = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return executable(path.to_owned());
    }
    let mut closed = None;
    for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        match executable(folder.join(path)) {
            Ok(found) => return Ok(found),
            // Such a one does not end the search.
            Err(Obstacle::NotExecutable { file }) => closed = closed.or(Some(file)),
            Err(_) => {}
        }
    }
    Err(match closed {
        Some(file) => Obstacle::NotExecutable { file },
        None => Obstacle::NotFound { name: name.into() },
    })
}

fn executable(file: PathBuf) -> Result<(PathBuf, Metadata), Obstacle> {
    let Ok(found) = fs::metadata(&file) else {
        return Err(Obstacle::NotFound { name: file.into() });
    };
    if found.is_dir() {
        return Err(Obstacle::Folder { file });
    }
    // Of root too, access asks for an execute bit.
    if !found.is_file() || access(&file, Access::EXEC_OK).is_err() {
        return Err(Obstacle::NotExecutable { file });
    }
    Ok((file, found))
}

/// The words behind a wrapper; `None` if the first word is none, or has nothing behind it.
fn unwrapped(words: &[OsString]) -> Result<Option<Vec<OsString>>, Obstacle> {
    let Some((first, rest)) = words.split_first() else {
        return Ok(None);
    };
    let name = Path::new(first).file_name().unwrap_or_default();
    let Some(wrapper) = WRAPPERS.iter().find(|wrapper| name == wrapper.name) else {
        return Ok(None);
    };
    let is_env = wrapper.name == "env";
    let mut operands = wrapper.operands;
    let mut at = 0;
    while let Some(word) = rest.get(at) {
        let text = word.to_string_lossy();
        at += 1;
        if is_env && (text == "-S" || text == "--split-string") {
            let split = rest.get(at).map(|line| line.to_string_lossy().into_owned());
            let split = split.unwrap_or_default();
            let split = split.split_whitespace().map(OsString::from);
            let inner = std::iter::once(first.clone()).chain(split);
            return unwrapped(
                &inner
                    .chain(rest.iter().skip(at + 1).cloned())
                    .collect::<Vec<_>>(),
            );
        }
        if is_env && clears(&text, rest.get(at)) {
            return Err(Obstacle::Cleared);
        }
        if text == "--" {
            break;
        }
        if wrapper.with_value.contains(&text.as_ref()) {
            at += 1;
            continue;
        }
        if text.starts_with('-') || (is_env && text.contains('=')) {
            continue;
        }
        if operands == 0 {
            at -= 1;
            break;
        }
        operands -= 1;
    }
    let inner: Vec<OsString> = rest.iter().skip(at).cloned().collect();
    Ok((!inner.is_empty()).then_some(inner))
}

/// Whether an argument of `env` takes `LD_PRELOAD` away or puts another in its place.
fn clears(text: &str, next: Option<&OsString>) -> bool {
    matches!(text, "-" | "-i" | "--ignore-environment" | "-uLD_PRELOAD")
        || text == "--unset=LD_PRELOAD"
        || (matches!(text, "-u" | "--unset") && next.is_some_and(|name| name == "LD_PRELOAD"))
        || (text.starts_with("LD_PRELOAD=") && !text.contains("libgpumemshim"))
}

/// What Linux makes of a script's command line: the interpreter of its `#!` line, at most one argument, the script.
fn scripted(file: &Path, words: &[OsString]) -> Result<Vec<OsString>, Obstacle> {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|opened| opened.take(LINE_BYTES).read_to_end(&mut head));
    if let Err(error) = read {
        return Err(Obstacle::Unreadable {
            file: file.to_owned(),
            why: error.to_string(),
        });
    }
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or(&[]);
    let Some(line) = line.strip_prefix(b"#!") else {
        return Err(Obstacle::NotAProgram { file: file.into() });
    };
    let line = line.trim_ascii();
    let (interpreter, argument) = match line.iter().position(u8::is_ascii_whitespace) {
        Some(end) => (&line[..end], line[end..].trim_ascii_start()),
        None => (line, &line[line.len()..]),
    };
    let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let interpreter = word(interpreter);
    if !Path::new(&interpreter).exists() {
        return Err(Obstacle::NoInterpreter {
            file: file.into(),
            interpreter: interpreter.into(),
        });
    }
    let mut inner = vec![interpreter];
    // `env -S` splits what Linux hands over as one argument.
    match argument.strip_prefix(b"-S") {
        Some(rest) => inner.extend([word(b"-S"), word(rest.trim_ascii_start())]),
        None if argument.is_empty() => {}
        None => inner.push(word(argument)),
    }
    inner.push(file.into());
    inner.extend(words.iter().skip(1).cloned());
    Ok(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn inner(line: &str) -> String {
        match unwrapped(&words(line)) {
            Ok(Some(inner)) => inner.join(OsStr::new(" ")).to_string_lossy().into_owned(),
            Ok(None) => "none".into(),
            Err(_) => "cleared".into(),
        }
    }

    #[test]
    fn wrappers_are_followed() {
        assert_eq!(inner("env A=1 -u B python x.py"), "python x.py");
        assert_eq!(inner("/usr/bin/env python -i"), "python -i");
        assert_eq!(inner("env -S python -u x.py"), "python -u x.py");
        assert_eq!(inner("timeout -s INT 10 ./job 5"), "./job 5");
        assert_eq!(inner("nice -n 5 -- ./job"), "./job");
        assert_eq!(inner("env"), "none");
        assert_eq!(inner("python env"), "none");
    }

    #[test]
    fn env_may_take_the_preload_away() {
        for line in [
            "env -i ./job",
            "env - ./job",
            "env -u LD_PRELOAD ./job",
            "env LD_PRELOAD=x ./job",
        ] {
            assert_eq!(inner(line), "cleared", "{line}");
        }
        assert_eq!(inner("env ./job -i"), "./job -i");
    }

    #[test]
    fn a_script_is_run_by_its_first_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("job");
        let run = |text: &str| {
            fs::write(&file, text).unwrap();
            scripted(&file, &words("job 5")).map(|words| {
                let line = words.join(OsStr::new("|"));
                line.to_string_lossy()
                    .replace(&file.display().to_string(), "job")
            })
        };
        assert_eq!(
            run("#! /bin/sh -e -u\necho").ok().unwrap(),
            "/bin/sh|-e -u|job|5"
        );
        assert_eq!(run("#!/bin/sh").ok().unwrap(), "/bin/sh|job|5");
        let split = run("#!/bin/sh -S python -u\n").ok().unwrap();
        assert_eq!(split, "/bin/sh|-S|python -u|job|5");
        assert!(matches!(run("echo"), Err(Obstacle::NotAProgram { .. })));
        assert!(matches!(
            run("#!/no/such\n"),
            Err(Obstacle::NoInterpreter { .. })
        ));
    }

    #[test]
    fn a_launcher_in_a_line_of_shell() {
        let called = |line: [&str; 3]| called(&line.map(OsString::from)).is_some();
        assert!(called(["bash", "-lc", "docker run image"]));
        assert!(!called(["bash", "-lc", "echo docker"]));
        assert!(!called(["python", "-c", "docker run"]));
    }
}
