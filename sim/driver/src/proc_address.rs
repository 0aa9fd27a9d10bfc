//! `cuGetProcAddress`: a function by name, version and variant.
//!
//! Its own first version has four parameters and its second five; a program
//! that looks it up at a version before 12000 calls the answer with four. What
//! is not there is an error of the first version; the second succeeds, answers
//! NULL and says why. So it was seen of driver 580.

use std::ffi::c_char;

use crate::abi::{In, Out, Outcome, Status};
use crate::entry::entry;
use crate::stream::DefaultStream;
use crate::table;

/// `CU_GET_PROC_ADDRESS_LEGACY_STREAM`.
const LEGACY_STREAM: u64 = 1;
/// `CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM`.
const PER_THREAD_STREAM: u64 = 2;

/// `CU_GET_PROC_ADDRESS_SUCCESS`.
const FOUND: i32 = 0;
/// `CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND`.
const NAME_NOT_FOUND: i32 = 1;
/// `CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT`.
const VERSION_NOT_SUFFICIENT: i32 = 2;

/// The row, or the status that says why there is none.
fn look_up(
    name: &In<c_char>,
    out: &Out<u64>,
    version: i32,
    flags: u64,
    default: DefaultStream,
) -> Outcome<Result<&'static table::Row, i32>> {
    out.required()?;
    let name = name.text()?;
    let variant = match flags {
        0 => default,
        LEGACY_STREAM => DefaultStream::Legacy,
        PER_THREAD_STREAM => DefaultStream::PerThread,
        _ => return Err(Status::INVALID_VALUE),
    };
    Ok(table::find(name, version, variant).map_err(|missing| {
        // Runtimes begin with the empty name, which no driver has.
        if !name.is_empty() {
            crate::log::line(&format!("{name} is not there at {version}: {missing:?}"));
        }
        match missing {
            table::Missing::Name => NAME_NOT_FOUND,
            table::Missing::Version => VERSION_NOT_SUFFICIENT,
        }
    }))
}

fn look_up_second(
    name: &In<c_char>,
    out: &Out<u64>,
    version: i32,
    flags: u64,
    status: &Out<i32>,
    default: DefaultStream,
) -> Outcome {
    let (address, said) = match look_up(name, out, version, flags, default)? {
        Ok(row) => (row.function.address(), FOUND),
        Err(why) => (0, why),
    };
    status.set_if_wanted(said);
    out.set(address)
}

entry! {
    /// The first version, without the answer to "why not".
    free fn cuGetProcAddress(name: In<c_char>, out: Out<u64>, version: i32, flags: u64) {
        match look_up(&name, &out, version, flags, DefaultStream::Legacy)? {
            Ok(row) => out.set(row.function.address()),
            Err(_) => Err(Status::NOT_FOUND),
        }
    }

    /// The second version; `status` may be NULL.
    free fn cuGetProcAddress_v2(
        name: In<c_char>,
        out: Out<u64>,
        version: i32,
        flags: u64,
        status: Out<i32>,
    ) {
        look_up_second(&name, &out, version, flags, &status, DefaultStream::Legacy)
    }

    /// The second version for programs built with a stream per thread: without
    /// flags it finds the variants for them.
    free fn cuGetProcAddress_v2_ptsz(
        name: In<c_char>,
        out: Out<u64>,
        version: i32,
        flags: u64,
        status: Out<i32>,
    ) {
        look_up_second(&name, &out, version, flags, &status, DefaultStream::PerThread)
    }
}
