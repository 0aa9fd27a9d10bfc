//! What a hook costs: pairs of `cuMemAllocAsync` and `cuMemFreeAsync`, with and without the shim, in turns.
//!
//! `gpumem-bench hook [PAIRS]` runs itself again without and with `LD_PRELOAD`, five times each in turns, and prints the median and the
//! 99th percentile of a call in nanoseconds, and the shim's share as the difference of the medians. It uses the
//! `libcuda.so.1` that the loader finds: a real driver, or the simulated one through `LD_LIBRARY_PATH`.

use std::ffi::c_void;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use libloading::os::unix::Library;

type Error = Box<dyn std::error::Error>;

/// Calls before anything is timed.
const WARM_UP: usize = 2_000;
/// Runs of each kind.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let pairs = |text: Option<&&str>| text.and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let done = match arguments.as_slice() {
        ["hook", rest @ ..] => compare(pairs(rest.first())),
        ["measure", rest @ ..] => measure(pairs(rest.first())),
        _ => Err("usage: gpumem-bench hook [PAIRS]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gpumem-bench: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs `measure` in turns without and with the shim.
fn compare(pairs: usize) -> Result<(), Error> {
    let own = std::env::current_exe()?;
    let beside = own.with_file_name("libgpumemshim.so");
    let shim = std::env::var_os("GPUMEM_SHIM").map_or(beside, PathBuf::from);
    if !shim.exists() {
        return Err(format!(
            "no shim at {}: build it, or set GPUMEM_SHIM",
            shim.display()
        )
        .into());
    }
    let spool = std::env::temp_dir().join(format!("gpumem-bench-{}", std::process::id()));
    std::fs::create_dir(&spool)?;
    let mut columns: [Vec<[f64; 4]>; 2] = Default::default();
    for _ in 0..ROUNDS {
        for (column, preload) in columns.iter_mut().zip([None, Some(&shim)]) {
            let mut command = Command::new(&own);
            command
                .args(["measure", &pairs.to_string()])
                .env("GPUMEM_DIR", &spool)
                .env_remove("LD_PRELOAD");
            command.env("GPUMEM_SOCKET", spool.join("none"));
            if let Some(shim) = preload {
                command.env("LD_PRELOAD", shim);
            }
            let output = command.output()?;
            let text = String::from_utf8(output.stdout)?;
            let numbers: Vec<f64> = text
                .split_whitespace()
                .filter_map(|word| word.parse().ok())
                .collect();
            column.push(
                numbers
                    .try_into()
                    .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?,
            );
        }
    }
    std::fs::remove_dir_all(&spool)?;
    let median = |column: &[[f64; 4]], at: usize| {
        let mut values: Vec<f64> = column.iter().map(|row| row[at]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    println!(
        "{pairs} pairs, {ROUNDS} runs each, medians of runs, ns a call      without     with     shim"
    );
    for (at, what) in [
        "allocation, median",
        "allocation, p99",
        "free, median",
        "free, p99",
    ]
    .into_iter()
    .enumerate()
    {
        let [without, with] = [&columns[0], &columns[1]].map(|column| median(column, at));
        println!(
            "{what:<58} {without:>10.0} {with:>10.0} {:>8.0}",
            with - without
        );
    }
    Ok(())
}

/// Times each call of so many pairs, and prints medians and 99th percentiles.
fn measure(pairs: usize) -> Result<(), Error> {
    type Status = u32;
    // SAFETY: the driver's library, whose functions are called below as CUDA's headers declare them.
    let driver = unsafe { Library::new("libcuda.so.1")? };
    macro_rules! function {
        ($name:literal, $type:ty) => {
            // SAFETY: the signature is that of CUDA's headers.
            *unsafe { driver.get::<$type>($name)? }
        };
    }
    let init = function!(b"cuInit\0", unsafe extern "C" fn(u32) -> Status);
    let retain = function!(
        b"cuDevicePrimaryCtxRetain\0",
        unsafe extern "C" fn(*mut *mut c_void, i32) -> Status
    );
    let set_current = function!(
        b"cuCtxSetCurrent\0",
        unsafe extern "C" fn(*mut c_void) -> Status
    );
    let alloc = function!(
        b"cuMemAllocAsync\0",
        unsafe extern "C" fn(*mut u64, usize, *mut c_void) -> Status
    );
    let free = function!(
        b"cuMemFreeAsync\0",
        unsafe extern "C" fn(u64, *mut c_void) -> Status
    );
    let mut context = std::ptr::null_mut();
    // SAFETY: plain driver calls, with valid out-parameters.
    unsafe {
        check("cuInit", init(0))?;
        check("cuDevicePrimaryCtxRetain", retain(&raw mut context, 0))?;
        check("cuCtxSetCurrent", set_current(context))?;
    }
    let (mut allocations, mut frees) = (Vec::with_capacity(pairs), Vec::with_capacity(pairs));
    for pair in 0..WARM_UP + pairs {
        let mut address = 0;
        let start = Instant::now();
        // SAFETY: a valid out-parameter, the default stream.
        let status = unsafe { alloc(&raw mut address, 4096, std::ptr::null_mut()) };
        let middle = Instant::now();
        check("cuMemAllocAsync", status)?;
        let resumed = Instant::now();
        // SAFETY: the address that was just allocated.
        let status = unsafe { free(address, std::ptr::null_mut()) };
        let end = Instant::now();
        check("cuMemFreeAsync", status)?;
        if pair >= WARM_UP {
            allocations.push(middle.duration_since(start).as_nanos());
            frees.push(end.duration_since(resumed).as_nanos());
        }
    }
    for column in [&mut allocations, &mut frees] {
        column.sort_unstable();
        println!("{} {}", column[pairs / 2], column[pairs * 99 / 100]);
    }
    Ok(())
}

fn check(what: &str, status: u32) -> Result<(), Error> {
    if status == 0 {
        Ok(())
    } else {
        Err(format!("{what} returned {status}").into())
    }
}
