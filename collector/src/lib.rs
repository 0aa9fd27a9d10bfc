//! The collector: ingest -> model -> insight.
//!
//! Data enters in [`ingest`] as chunks, over a Unix socket or from a capture, and becomes a [`model`] of every process: what
//! is alive, what was, where it was made. [`symbols`] turns a stack into names and says whose line it is. An insight reads
//! the model and never the wire; a view reads insights.
#![forbid(unsafe_code)]

pub mod error;
pub mod ingest;
pub mod insight;
pub mod model;
pub mod symbols;

pub use error::CollectorError;
