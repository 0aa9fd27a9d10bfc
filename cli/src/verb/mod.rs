//! The verbs, one file each: from arguments to a report and an exit status.

pub(crate) mod blocks;
pub(crate) mod collect;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod leaks;
pub(crate) mod ps;
pub(crate) mod run;
pub(crate) mod sim;
