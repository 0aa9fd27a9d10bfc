//! What the model means to a person: one file a question.
//!
//! An insight reads the model and the symbols, never the wire, and leaves as a serialisable report that is the contract of
//! `--json`; the views print the same report. Sizes are bytes, times nanoseconds since the epoch, frames innermost first;
//! what is not known is null and never 0.

pub mod blocks;
pub mod category;
pub mod caveats;
pub mod clock;
pub mod fit;
pub mod leaks;
pub mod oom;
pub mod peak;
pub mod ps;
pub mod size;
pub mod who;

#[cfg(test)]
mod tests;
