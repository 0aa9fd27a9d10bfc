//! Notes for a dry run: what the program did that decides how far the run can be
//! believed.
//!
//! `GPUMEM_SIM_NOTES` names the file; with `%p` in it each process has its own.
//! It is replaced in one step when something new is noted, at most a second after
//! a count has changed (as long as the driver is called), and at exit, so that
//! it holds for a process that is killed. A line is a fact, its fields separated
//! by tabs; who reads it leaves out lines that he does not know. DEVICE is the
//! machine's number, the same in all processes whichever devices they see:
//!
//! | line | meaning |
//! |---|---|
//! | `peak DEVICE BYTES` | the most that this process has taken of a device |
//! | `common_peak DEVICE BYTES` | the most that all processes had taken when this one took some; the largest of all processes' is the peak of the device |
//! | `out_of_memory DEVICE COUNT` | how often less was free than this process asked for |
//! | `small_copy OPERATOR COUNT ZEROED` | copies to the host of at most 16 bytes: numbers that a kernel would have computed, such as how many elements are not zero; by PyTorch's operator (`unknown` outside of one), how many there were and to how many zeros, or a one for true, were brought (`GPUMEM_SIM_SMALL_D2H`) in place of what lay there |
//! | `unimplemented NAME COUNT` | calls of a function that is not simulated |
//!
//! What these numbers steer (the size of a tensor, a loop's end) is not what it
//! would be on a device, and so may be the memory that depends on it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::{Outcome, Status};
use crate::machine::{self, Machine};
use crate::{backing, config, context, file, operator, table};

/// Copies to the host up to this size are taken for numbers: the largest scalar
/// of PyTorch's, a complex double.
const SCALAR_BYTES: u64 = 16;
/// How old the file may become while the driver is called.
const PERIOD: Duration = Duration::from_secs(1);

/// What is noted of an operator's small copies.
#[derive(Default)]
struct Copies {
    count: u64,
    zeroed: u64,
}

struct Notes {
    copies: BTreeMap<Arc<str>, Copies>,
    written: Option<Instant>,
}

/// A small copy to the host that has just been made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SmallCopy {
    zeroed: bool,
    /// Where one byte went that was not read from the device.
    byte: Option<u64>,
}

fn notes() -> MutexGuard<'static, Notes> {
    static NOTES: Mutex<Notes> = Mutex::new(Notes {
        copies: BTreeMap::new(),
        written: None,
    });
    NOTES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether notes are wanted.
fn wanted() -> bool {
    config::get().notes.is_some()
}

impl Machine {
    /// Remembers a copy to the host, to be noted when the lock is given back.
    /// `byte`: where a single one went that was not read.
    pub(crate) fn remember_copy(&mut self, bytes: usize, zeroed: bool, byte: Option<u64>) {
        let small = (1..=SCALAR_BYTES).contains(&(bytes as u64)) || zeroed;
        if byte.is_some() || (small && wanted()) {
            self.small_copy = Some(SmallCopy { zeroed, byte });
        }
    }

    fn facts(&self, text: &mut String) {
        let mut line = |name: &str, device: usize, value: u64| {
            if value > 0 {
                // Writing to a string does not fail; so below.
                let _ = writeln!(text, "{name}\t{device}\t{value}");
            }
        };
        for device in self.ledger.devices() {
            let account = self.ledger.account(device);
            line("peak", device.index(), account.peak_bytes);
            line("common_peak", device.index(), account.common_peak_bytes);
            line("out_of_memory", device.index(), account.refusals);
        }
    }
}

/// Lets a check of PyTorch's pass, notes what a call has done, and writes the file
/// when it is time. No lock of this library is held.
pub(crate) fn after_call(outcome: &Outcome, copy: Option<SmallCopy>) {
    let operator = copy.and_then(|_| operator::of_this_call());
    if let Some(byte) = copy.and_then(|copy| copy.byte)
        && operator.as_deref().is_some_and(operator::asks_for_yes)
    {
        // SAFETY: the call has just written there, and the program may not take
        // the memory away before it has returned.
        unsafe { backing::fill(byte, 1_u8, 1) };
    }
    if !wanted() {
        return;
    }
    let mut urgent = *outcome == Err(Status::OUT_OF_MEMORY);
    if let Some(copy) = copy {
        let name = operator.unwrap_or_else(|| Arc::from("unknown"));
        let mut notes = notes();
        let copies = notes.copies.entry(name).or_default();
        urgent |= copies.count == 0;
        copies.count += 1;
        copies.zeroed += u64::from(copy.zeroed);
    }
    let written = notes().written;
    if urgent || written.is_none_or(|written| written.elapsed() >= PERIOD) {
        write();
    }
}

/// Writes the file now: something has happened for the first time, or the
/// process ends.
pub(crate) fn write() {
    let Some(pattern) = &config::get().notes else {
        return;
    };
    if machine::forked() {
        return;
    }
    let mut text = String::new();
    machine::lock().facts(&mut text);
    // Held while the file is written, so that a newer file stays.
    let mut notes = notes();
    for (operator, copies) in &notes.copies {
        let Copies { count, zeroed } = copies;
        let _ = writeln!(text, "small_copy\t{operator}\t{count}\t{zeroed}");
    }
    let refused = table::tallies().filter(|tally| tally.is_refused());
    for tally in refused.chain([&context::cuGetExportTable::TALLY]) {
        if tally.calls() > 0 {
            let _ = writeln!(text, "unimplemented\t{}\t{}", tally.symbol, tally.calls());
        }
    }
    let path = file::of_process(pattern);
    let failed = file::replace(&path, text.as_bytes()).is_err();
    if failed && notes.written.is_none() {
        crate::log::line(&format!("{} cannot be written", path.display()));
    }
    notes.written = Some(Instant::now());
}

/// Runs after all exit handlers and destructors of the program.
extern "C" fn at_exit() {
    // What never called the driver has nothing to note, and what was forked from
    // what did has its locks as they were.
    if wanted() && !machine::forked() && notes().written.is_some() {
        write();
    }
}

#[used]
// SAFETY: the section holds pointers to functions without parameters.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
