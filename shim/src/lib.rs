//! The library that rides in a CUDA program and records who allocates its GPU memory.
//!
//! It is preloaded (`LD_PRELOAD=libgpumemshim.so`) and does nothing until the program makes a context or allocates. Then each
//! call of [`intercept`] becomes an event with a [`stack`], goes through a ring ([`record`]) to two helper threads, and on to
//! a collector or a file ([`ship`]). The program's own calls, results and errors are untouched; when anything surprises us
//! the [`fuse`] blows and every hook passes through.

// A test executable exports nothing, so there the doors in have no callers.
#![cfg_attr(test, allow(dead_code, non_snake_case))]

mod config;
mod elf;
mod fuse;
mod guard;
mod intercept;
mod process;
mod real;
mod record;
mod ship;
mod stack;
mod tls;
