//! The text of source lines, read where the program ran and kept in the capture.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use gpumem_wire::{Definition, StackId};

use crate::model::Process;
use crate::symbols::frames::frames;
use crate::symbols::site::{Mine, Whose, site, whose};

/// Lines that are kept at most.
const LINES: usize = 20_000;
/// Characters of one line that are kept.
const LINE_CHARACTERS: usize = 400;
/// Larger files are not read.
const FILE_BYTES: u64 = 8 << 20;

/// The text of every place's site and of the user's own frames there, as far as it is not known yet. A file that changed after the
/// process started is left out: its lines may be others by now.
pub fn read(process: &Process) -> Vec<Definition> {
    let here = rustix::system::uname();
    if here.nodename().to_string_lossy() != process.definition().host {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (file, lines) in wanted(process) {
        if let Some(path) = readable(process, &file) {
            found.extend(
                texts(&path, &lines)
                    .into_iter()
                    .map(|(line, text)| Definition::Source {
                        file: file.clone(),
                        line,
                        text,
                    }),
            );
        }
    }
    found
}

/// The lines to be read, by file.
fn wanted(process: &Process) -> BTreeMap<String, BTreeSet<u32>> {
    let definitions = process.definitions();
    let mut wanted: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut count = 0;
    let mut want = |file: Option<String>, line: Option<u32>| {
        let Some((file, line)) = file.zip(line) else {
            return;
        };
        if count < LINES && definitions.source(&file, line).is_none() {
            count += usize::from(wanted.entry(file).or_default().insert(line));
        }
    };
    let places = process.places().iter().map(|(_, place)| place.stack);
    let failures = process.failures().iter().map(|failure| failure.stack);
    let stacks: BTreeSet<StackId> = places.chain(failures).collect();
    for stack in stacks {
        if let Some(site) = site(process, stack) {
            want(site.file, site.line);
        }
        for frame in frames(process, stack) {
            if whose(&frame, &Mine::default()) == Whose::User {
                want(frame.file, frame.line);
            }
        }
    }
    wanted
}

/// The path of a source file, if it can be trusted to be what ran.
fn readable(process: &Process, file: &str) -> Option<PathBuf> {
    if file.is_empty() || file.starts_with('<') {
        return None;
    }
    let path = Path::new(&process.definition().directory).join(file);
    let metadata = fs::metadata(&path).ok()?;
    let changed_ns = metadata
        .modified()
        .ok()?
        .duration_since(UNIX_EPOCH)
        .ok()?
        .as_nanos();
    let started_ns = u128::from(process.definition().started_ns);
    let unchanged = started_ns == 0 || changed_ns <= started_ns;
    (path.is_absolute() && metadata.is_file() && metadata.len() <= FILE_BYTES && unchanged)
        .then_some(path)
}

/// Some lines of a file.
fn texts(path: &Path, lines: &BTreeSet<u32>) -> Vec<(u32, String)> {
    let (Ok(file), Some(&last)) = (File::open(path), lines.last()) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        if !reader
            .read_until(b'\n', &mut line)
            .is_ok_and(|bytes| bytes > 0)
        {
            break;
        }
        if lines.contains(&number) {
            let text = String::from_utf8_lossy(&line);
            found.push((number, text.trim().chars().take(LINE_CHARACTERS).collect()));
        }
    }
    found
}
