//! Ingest: chunks come in, models come out.
//!
//! [`capture`] reads and writes files, [`server`] takes the streams of running processes from a Unix socket, [`decode`] turns
//! a chunk into definitions and events, [`session`] finds the captures that belong together, by what they begin with (`head`);
//! [`running`] knows the collector that lives on, and what it writes now.
//! Nothing that comes in is trusted: a bad stream costs itself and one sentence, a bad chunk costs the events that were in it.

pub mod capture;
pub mod decode;
mod head;
pub mod liveness;
pub mod running;
pub mod server;
pub mod session;

pub use capture::{CaptureReader, CaptureWriter};
pub use server::{FinishPolicy, Finished, Running, Server};
pub use session::{Source, newest, open};
