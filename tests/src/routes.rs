//! Which function a program gets for a look-up: compared without the shim and with it.
//!
//! A program under test writes a line a look-up: `name version flags result object offset`, where the answer lies `offset`
//! bytes into `object`, and `dlsym` stands for the version of what dlsym answered. Without the shim, the offset in the driver
//! says which function was meant; with it, that function must come from the shim if the shim has it, else from the driver.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::artefacts;
use crate::place::finish;

/// A look-up: name, version, flags.
pub type Question = (String, String, u64);

/// Where the answer lies: object and offset; `None` where there is no such function.
pub type Answer = Option<(String, u64)>;

/// All look-ups of a program.
pub type Routes = BTreeMap<Question, Answer>;

/// The driver's functions that a library exports, with their offsets.
pub fn exports(library: &Path) -> BTreeMap<String, u64> {
    let mut nm = Command::new("nm");
    let listed = finish(nm.args(["-D", "--defined-only"]).arg(library)).well();
    listed
        .out
        .lines()
        .filter_map(|line| {
            let (offset, rest) = line.split_once(' ')?;
            // `nm` writes the version behind the name.
            let name = rest.split_once(' ')?.1.split('@').next()?;
            Some((name.to_owned(), u64::from_str_radix(offset, 16).ok()?))
        })
        .filter(|(name, _)| name.starts_with("cu"))
        .collect()
}

/// Reads what a program wrote.
#[track_caller]
pub fn parse(text: &str) -> Routes {
    text.lines().map(parse_line).collect()
}

#[track_caller]
fn parse_line(line: &str) -> (Question, Answer) {
    let fields: Vec<&str> = line.split(' ').collect();
    let [name, version, flags, result, object, offset] = fields[..] else {
        panic!("no look-up: {line}");
    };
    let flags = flags.parse().expect("flags");
    let offset = u64::from_str_radix(offset, 16).expect("an offset");
    let found = result == "0" && object != "-";
    (
        (name.to_owned(), version.to_owned(), flags),
        found.then(|| (object.to_owned(), offset)),
    )
}

/// Checks every look-up, and gives those that the shim served.
#[track_caller]
pub fn check(driver: &Path, plain: &Routes, shimmed: &Routes) -> BTreeSet<Question> {
    assert_eq!(
        plain.keys().collect::<Vec<_>>(),
        shimmed.keys().collect::<Vec<_>>(),
        "the same is asked with the shim and without"
    );
    let shim = artefacts::shim().display().to_string();
    let watched = exports(&artefacts::shim());
    let mut at = BTreeMap::<u64, Vec<String>>::new();
    for (name, offset) in exports(driver) {
        at.entry(offset).or_default().push(name);
    }
    let mut served = BTreeSet::new();
    for (question, answer) in plain {
        let got = &shimmed[question];
        let Some((_, offset)) = answer else {
            assert_eq!(*got, None, "{question:?} is not in the driver");
            continue;
        };
        let names = at.get(offset).map_or(&[][..], Vec::as_slice);
        let (object, got_offset) = got.as_ref().expect("the driver has it");
        match names.iter().find_map(|name| watched.get(name)) {
            Some(ours) => {
                assert_eq!(*object, shim, "{question:?} ({names:?}) escaped the shim");
                assert_eq!(got_offset, ours, "{question:?} got another function");
                served.insert(question.clone());
            }
            None => {
                assert_ne!(*object, shim, "{question:?} ({names:?}) is not watched");
                assert_eq!(got_offset, offset, "{question:?} got another function");
            }
        }
    }
    served
}
