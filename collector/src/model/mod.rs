//! The model: one [`Session`] of [`Process`]es, built from definitions and events alone.
//!
//! Data enters through [`Process::define`], [`Process::anchor`] and [`Process::apply`], in the order of the capture. What is
//! alive is decided by the wire's rule table and by nothing else; everything here is derived from the changes that it
//! reports. Data leaves through the views ([`segment`], [`block`]), the totals ([`totals`]) and the [`history`] of each
//! place. Memory is proportional to live objects and distinct stacks, never to events.

pub mod address;
pub mod block;
pub mod clock;
pub mod definitions;
pub mod exit;
pub mod history;
pub mod memory;
pub mod peak;
pub mod place;
pub mod process;
mod provisional;
pub mod scope;
pub mod segment;
pub mod selfcheck;
pub mod session;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod totals;

pub use definitions::Definitions;
pub use history::{ClockSource, History};
pub use place::{Framework, Layer, Place, PlaceId};
pub use process::{Failure, Process, State};
pub use session::Session;

pub use gpumem_wire::define::PythonStatus;
