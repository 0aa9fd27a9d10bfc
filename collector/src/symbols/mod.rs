//! Symbols: from a stack's numbers to names, and to the line that a person would look at.
//!
//! [`native`] looks addresses up in the ELF objects of this machine and leaves the answers in the definitions, where every
//! later reader finds them. [`frames`] reads a stack with all names; [`site`] says whose line it is; [`source`] fetches that
//! line's text.

pub mod frames;
pub mod native;
pub mod site;
pub mod source;

pub use frames::{Language, ResolvedFrame, frames, operator};
pub use site::{Mine, Site, site, site_by};

use gpumem_wire::Definition;

use crate::model::Process;

/// Finds the names of all native frames of a process, and the text of the source lines that a report would show. Gives the
/// new definitions, which the process has then too, so that they can be kept in its capture.
pub fn symbolise(process: &mut Process) -> Vec<Definition> {
    let mut found = native::symbolise(process);
    for definition in &found {
        process.define(definition.clone());
    }
    let sources = source::read(process);
    for definition in &sources {
        process.define(definition.clone());
    }
    found.extend(sources);
    found
}

#[cfg(test)]
mod tests;
