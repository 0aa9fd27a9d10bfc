//! Which Python a program is, by the names of its files alone: nothing is run.

use std::fmt;
use std::path::Path;

use super::elf::Head;

/// The minor versions of Python 3 whose frames the shim reads: those of `shim/src/stack/python/layout/`.
const READ: [u32; 3] = [11, 12, 13];

/// A version of Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    /// Built without the global lock: another layout, which the shim does not know.
    free_threaded: bool,
}

impl Version {
    /// A version with a global lock.
    pub(super) fn new(major: u32, minor: u32) -> Self {
        Self {
            major,
            minor,
            free_threaded: false,
        }
    }

    /// That of a program: `python3.11`, or one that has `libpython3.11.so` in it.
    pub(super) fn of(file: &Path, head: &Head) -> Option<Self> {
        let real = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        let name = real.file_name()?.to_string_lossy().into_owned();
        Self::parse(&name, "python").or_else(|| {
            let mut libraries = head.needed.iter();
            libraries.find_map(|library| Self::parse(library, "libpython"))
        })
    }

    /// Reads what stands behind a prefix: `3.11`, `3.13t`, `3.8.so.1.0`.
    fn parse(name: &str, prefix: &str) -> Option<Self> {
        let (major, rest) = name.strip_prefix(prefix)?.split_once('.')?;
        let end = rest
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(rest.len());
        let (minor, rest) = rest.split_at(end);
        Some(Self {
            free_threaded: rest.starts_with('t'),
            ..Self::new(major.parse().ok()?, minor.parse().ok()?)
        })
    }

    /// Whether its frames are read.
    pub(super) fn is_read(&self) -> bool {
        self.major == 3 && READ.contains(&self.minor) && !self.free_threaded
    }

    /// The versions that are, for a sentence.
    pub(super) fn read() -> String {
        let names: Vec<String> = READ.iter().map(|minor| format!("3.{minor}")).collect();
        match names.split_last() {
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.free_threaded { "t" } else { "" };
        write!(out, "Python {}.{}{kind}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_version() {
        let program = |name| Version::parse(name, "python");
        assert_eq!(program("python3.11"), Some(Version::new(3, 11)));
        assert!(!program("python3.13t").unwrap().is_read());
        assert!(!program("python2.7").unwrap().is_read());
        assert_eq!(program("python3"), None);
        assert_eq!(program("pythonw.exe"), None);
        assert_eq!(
            Version::parse("libpython3.8.so.1.0", "libpython"),
            Some(Version::new(3, 8))
        );
    }

    #[test]
    fn the_versions_are_those_of_the_shim() {
        let layouts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shim/src/stack/python/layout");
        for minor in 0..30 {
            assert_eq!(
                layouts.join(format!("v3_{minor}.rs")).is_file(),
                Version::new(3, minor).is_read(),
                "3.{minor}"
            );
        }
    }
}
