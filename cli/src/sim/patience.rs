//! Says once that a dry run goes on although its peak has long been reached, or waits for a number that nobody computes.

use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::notes::Notes;
use crate::show;
use crate::show::WIDTH;
use crate::show::size::size;
use crate::show::text::wrap;

/// How often the notes are looked at.
const LOOK: Duration = Duration::from_secs(5);
/// A peak that has stood for so long has been reached.
const LONG: Duration = Duration::from_secs(60);

/// A watch over the notes of a dry run.
pub(crate) struct Patience {
    ended: Sender<()>,
    thread: JoinHandle<()>,
}

impl Patience {
    /// Watches the notes in this folder from now on.
    pub(super) fn over(notes: PathBuf) -> Self {
        let (ended, end) = channel::<()>();
        let thread = thread::spawn(move || {
            let start = Instant::now();
            let mut stands = Stands::default();
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                let notes = Notes::read(&notes);
                if stands.long(start.elapsed(), notes.peak_bytes()) {
                    show::say(&word(&notes));
                    return;
                }
            }
        });
        Self { ended, thread }
    }

    /// The program has ended.
    pub(crate) fn end(self) {
        drop(self.ended);
        // It only prints: if it panicked, nothing is lost.
        let _ = self.thread.join();
    }
}

/// Since when the peak has been what it is.
#[derive(Default)]
struct Stands {
    peak_bytes: Option<u64>,
    since: Duration,
}

impl Stands {
    /// Whether it has stood for long now.
    fn long(&mut self, now: Duration, peak_bytes: Option<u64>) -> bool {
        if peak_bytes != self.peak_bytes {
            (self.peak_bytes, self.since) = (peak_bytes, now);
        }
        peak_bytes.is_some() && now.saturating_sub(self.since) >= LONG
    }
}

fn word(notes: &Notes) -> String {
    let peak = size(notes.peak_bytes().unwrap_or(0));
    let mut word = format!(
        "the program still runs, and its peak has stood at {peak} for a minute. Ctrl-C ends it and shows the report; fewer \
         steps or --timeout end it by themselves."
    );
    if notes.is_steered() {
        word.push_str(
            " It asks tensors for yes or no, which no kernel computes here: a loop may wait for an answer that never comes.",
        );
    }
    format!("gpumem: {}\n", wrap(&word, 8, WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_moves_or_is_none_yet_has_not_stood_for_long() {
        let at = Duration::from_secs;
        let mut stands = Stands::default();
        assert!(!stands.long(at(100), None));
        assert!(!stands.long(at(105), Some(7)));
        assert!(!stands.long(at(164), Some(7)));
        assert!(stands.long(at(165), Some(7)));
        assert!(!stands.long(at(170), Some(8)));
        assert!(!stands.long(at(229), Some(8)));
        assert!(stands.long(at(230), Some(8)));
    }

    #[test]
    fn the_word_fits_the_terminal() {
        for line in word(&Notes::default()).lines() {
            assert!(line.len() <= WIDTH, "{line}");
        }
    }
}
