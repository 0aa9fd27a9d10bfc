//! The stack of this thread, now, as an id.
//!
//! [`capture()`] is the way in. It walks the Python frames ([`python`]) and the native ones ([`native`]) and folds what it sees
//! into a hash ([`fold`]); a cache in the thread's own memory ([`scratch`]) knows the id of a stack that was seen before, and
//! that is all that happens on a hot path: no lock, no allocation, no system call. A stack that is new to the thread is merged
//! into one list of frames ([`merge`]), in terms of modules ([`module`]) and code objects, and looked up in a table that all
//! threads share ([`intern`]). What ids stand for leaves through the append-only [`arena`].

pub(crate) mod arena;
mod capture;
mod fold;
mod intern;
mod merge;
mod module;
mod native;
mod python;
mod region;
mod scratch;

pub(crate) use capture::{Want, bump_epoch, capture, counters, led_here_from, set_full_native};
pub(crate) use python::{python_file, python_is_collecting, python_is_finalising, python_status};
