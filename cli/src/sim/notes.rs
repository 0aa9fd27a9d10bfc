//! What the simulated driver noted: on which numbers the run depended that only a real device would have computed.
//!
//! A file a process, a fact a line, its fields separated by tabs; `sim/driver/src/notes.rs` says which facts there are.
//! Lines that are not known are left out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Serialize;

use crate::show::size::many;
use crate::show::text::clean;

/// Bytes of one file that are read.
const FILE_BYTES: usize = 1 << 20;
/// Unimplemented functions that a sentence names.
const NAMED: usize = 4;

/// The facts of all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notes {
    /// Small copies to the host, by operator.
    copies: BTreeMap<String, Copies>,
    /// Functions that are not simulated, with how often they were called.
    unimplemented: BTreeMap<String, u64>,
    /// The most bytes that all processes together had of a device.
    peaks: BTreeMap<i64, u64>,
    /// How often less was free than a process asked for.
    refused: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Copies {
    count: u64,
    zeroed: u64,
}

/// Something that could not be known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Unknown {
    /// `size`, `value` or `function`.
    pub(crate) kind: &'static str,
    /// The operator or function.
    pub(crate) name: String,
    /// How often.
    pub(crate) count: u64,
    /// What that means, a sentence.
    pub(crate) why: String,
}

/// Operators of torch whose result has a size that a kernel counts.
const SIZED: [&str; 6] = [
    "nonzero",
    "masked_select",
    "unique",
    "unique2",
    "bincount",
    "repeat_interleave",
];

impl Notes {
    /// Reads all files of a folder.
    pub(super) fn read(folder: &Path) -> Self {
        let mut notes = Self::default();
        let Ok(entries) = fs::read_dir(folder) else {
            return notes;
        };
        for entry in entries.filter_map(Result::ok) {
            if let Ok(mut bytes) = fs::read(entry.path()) {
                bytes.truncate(FILE_BYTES);
                notes.add(&String::from_utf8_lossy(&bytes));
            }
        }
        notes
    }

    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            match *fields.as_slice() {
                ["small_copy", operator, count, zeroed] => {
                    let copies = self.copies.entry(operator_name(operator)).or_default();
                    copies.count = copies.count.saturating_add(number(count));
                    copies.zeroed = copies.zeroed.saturating_add(number(zeroed));
                }
                ["unimplemented", name, count] => {
                    let calls = self.unimplemented.entry(clean(name)).or_default();
                    *calls = calls.saturating_add(number(count));
                }
                ["common_peak" | "peak", device, bytes] => {
                    if let Ok(device) = device.parse() {
                        let peak = self.peaks.entry(device).or_default();
                        *peak = (*peak).max(number(bytes));
                    }
                }
                ["out_of_memory", _, count] => {
                    self.refused = self.refused.saturating_add(number(count));
                }
                _ => {}
            }
        }
    }

    /// The most bytes that were taken of any device, contexts and all.
    pub(crate) fn peak_bytes(&self) -> Option<u64> {
        self.peaks.values().copied().max()
    }

    /// How often less was free than a process asked for: an allocator may then have emptied its cache and gone on.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    /// Whether a tensor was made whose size a kernel would have counted.
    pub(super) fn sizes_unknown(&self) -> bool {
        self.copies
            .keys()
            .any(|name| SIZED.contains(&name.as_str()))
    }

    /// Whether a number was read that a kernel would have computed.
    pub(super) fn values_read(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Whether a tensor was asked for yes or no.
    pub(super) fn is_steered(&self) -> bool {
        self.copies.contains_key("is_nonzero")
    }

    /// What could not be known: sizes first, then values, then functions.
    pub(crate) fn unknown(&self) -> Vec<Unknown> {
        let of = |sized: bool| {
            let wanted = move |name: &str| SIZED.contains(&name) == sized;
            self.copies
                .iter()
                .filter(move |(name, _)| wanted(name))
                .map(move |(name, copies)| self.copy(name, *copies, sized))
        };
        of(true).chain(of(false)).chain(self.functions()).collect()
    }

    fn copy(&self, name: &str, copies: Copies, sized: bool) -> Unknown {
        let times = many(copies.count, "time");
        let brought = if copies.zeroed == copies.count {
            "it was taken to be 0"
        } else if copies.zeroed > 0 {
            "it was at times taken to be 0"
        } else {
            "it was what lay in the memory"
        };
        let why = if sized {
            format!(
                "{} ({times}) makes a tensor as large as its data say, which were not computed: {brought}, and the memory of \
                 what follows may be more or less",
                maker(name)
            )
        } else {
            format!(
                "{} ({times}) read a number that a kernel would have computed: {brought}; where it steers the program, its \
                 memory may differ",
                reader(name)
            )
        };
        Unknown {
            kind: if sized { "size" } else { "value" },
            name: name.to_owned(),
            count: copies.count,
            why,
        }
    }

    fn functions(&self) -> Option<Unknown> {
        let names: Vec<&str> = self.unimplemented.keys().map(String::as_str).collect();
        if names.is_empty() {
            return None;
        }
        let count = self.unimplemented.values().sum();
        let named = names.get(..NAMED).unwrap_or(&names).join(", ");
        let more = match names.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(Unknown {
            kind: "function",
            name: names.join(" "),
            count,
            why: format!(
                "{named}{more} ({}) cannot be simulated and answered \"not supported\": a program that needs them goes \
                 another way on a real device",
                many(count, "call")
            ),
        })
    }
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

/// `nonzero` of `at::_ops::nonzero::call(at::Tensor const&)` and of `at::native::nonzero_cuda_out_impl<float>(...)`.
fn operator_name(symbol: &str) -> String {
    let begun = symbol.find("at::").and_then(|at| symbol.get(at..));
    let symbol = begun.unwrap_or(symbol);
    let end = symbol.find(['(', '<', ' ']).unwrap_or(symbol.len());
    let path = symbol.get(..end).unwrap_or(symbol);
    let name = match path.split_once("at::_ops::") {
        Some((_, rest)) => rest.split("::").next(),
        None => path.rsplit("::").next(),
    };
    let name = name.unwrap_or(path).trim_start_matches('_');
    // How an operator is carried out says nothing to a person.
    let sized = SIZED.iter().find(|known| {
        let rest = name.strip_prefix(*known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    });
    let plain = ["_cuda", "_Tensor", "_out", "_Scalar"]
        .iter()
        .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
    clean(sized.map_or(plain, |known| known))
}

/// What a program calls that makes a tensor of a size that a kernel counts.
fn maker(operator: &str) -> &str {
    match operator {
        "nonzero" => "nonzero (also behind x[mask], masked_select and where)",
        "unique2" => "unique",
        other => other,
    }
}

/// What a program calls that reads a number.
fn reader(operator: &str) -> &str {
    match operator {
        "local_scalar_dense" | "item" => ".item()",
        "is_nonzero" => "a tensor in a condition",
        "unknown" | "" => "a copy of a few bytes to the host",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "peak\t0\t1000\ncommon_peak\t0\t3000\nout_of_memory\t0\t2\n\
        small_copy\tat::_ops::nonzero::call(at::Tensor const&)\t3\t0\n\
        small_copy\tat::native::_local_scalar_dense_cuda(at::Tensor const&)\t12\t12\n\
        small_copy\tunknown\t1\t0\nunimplemented\tcuTexRefCreate\t2\nlater\t1\nunimplemented\tcuX\tnone\n";

    #[test]
    fn facts_become_sentences() {
        let mut notes = Notes::default();
        notes.add(TEXT);
        notes.add("common_peak\t1\t5000\nunimplemented\tcuTexRefCreate\t1\n");
        assert_eq!(notes.peak_bytes(), Some(5000));
        assert_eq!(notes.refused(), 2);
        let said: Vec<(&str, u64, String)> = notes
            .unknown()
            .into_iter()
            .map(|unknown| (unknown.kind, unknown.count, unknown.why))
            .collect();
        assert_eq!(said.len(), 4, "{said:?}");
        assert_eq!((said[0].0, said[0].1), ("size", 3));
        assert!(
            said[0].2.starts_with(
                "nonzero (also behind x[mask], masked_select and where) (3 times) makes"
            )
        );
        assert!(said[1].2.starts_with(".item() (12 times) read a number"));
        assert!(said[1].2.contains("taken to be 0"));
        assert!(said[2].2.starts_with("a copy of a few bytes"));
        assert!(said[3].2.starts_with("cuTexRefCreate, cuX (3 calls)"));
    }

    #[test]
    fn operators_have_the_names_that_a_person_knows() {
        for (symbol, name) in [
            ("at::_ops::nonzero::call(at::Tensor const&)", "nonzero"),
            (
                "void at::native::nonzero_cuda_out_impl<float>(at::Tensor const&)",
                "nonzero",
            ),
            ("at::native::internal::unique_cuda_template", "unique"),
            (
                "at::native::_local_scalar_dense_cuda(at::Tensor const&)",
                "local_scalar_dense",
            ),
            ("at::native::is_nonzero(at::Tensor const&)", "is_nonzero"),
            ("at::_ops::copy_::call(at::Tensor&)", "copy_"),
            ("unknown", "unknown"),
        ] {
            assert_eq!(operator_name(symbol), name, "{symbol}");
        }
    }

    #[test]
    fn whatever_lies_there_is_no_error() {
        let mut notes = Notes::default();
        notes.add("\t\t\n\u{fffd}\npeak\tx\t5\nsmall_copy\t\x1b[2J\t18446744073709551616\t0\n");
        assert_eq!(notes.peak_bytes(), None);
        assert!(notes.unknown().iter().all(|one| !one.why.contains('\x1b')));
        assert_eq!(Notes::read(Path::new("/no/such/folder")), Notes::default());
    }
}
