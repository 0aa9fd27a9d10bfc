//! The harness: real processes under the real shim, on a simulated driver or on NVIDIA's own library, without a GPU.
//!
//! [`artefacts`] builds what is tested, as it is shipped. A [`Place`] is one test's own folder: it starts jobs under the shim
//! and reads what came of them. [`ledger`] puts the driver's account and the recorded map into one form, to be compared.
//! [`routes`] does so for the functions that look-ups give. [`cc`] compiles the C programs beside the tests, [`python`] finds
//! interpreters, [`deps`] finds what the scripts beside the tests brought; what is missing is a test that says `skipped: ...`,
//! or a failure where `GPUMEM_TEST_REQUIRE=1`.

pub mod artefacts;
pub mod cc;
pub mod deps;
pub mod ledger;
pub mod place;
pub mod python;
pub mod routes;

pub use place::{Finished, Place};
