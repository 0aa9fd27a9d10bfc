//! The native part of this thread's stack.
//!
//! [`Registers::here`] starts a walk. [`rules`] says for each return address how to find the next frame: 8 bytes from a shared
//! table, filled on a miss from the object's `.eh_frame`. [`walker`] applies them frame by frame, never reading outside of the
//! thread's own stack ([`bounds`]); [`replay`] remembers the last walk and re-reads only what that walk read; [`outer`] keeps
//! the hash of the frames outside of the interpreter. [`object`] tells which ELF object an address lies in, [`elf`] reads
//! that object's symbols and build id, and [`x86_64`] holds all that depends on the machine.

pub(crate) mod bounds;
pub(crate) mod elf;
pub(crate) mod object;
pub(crate) mod outer;
pub(crate) mod replay;
pub(crate) mod rules;
pub(crate) mod walker;
mod x86_64;

pub(crate) use bounds::Bounds;
pub(crate) use x86_64::{Registers, Rule, Step, step};
