//! A simulated CUDA driver, which programs take for `libcuda.so.1`.
//!
//! Memory is real (lazily backed host memory, copied by real copies that leave
//! holes where nothing was written: `sparse.rs`), counted against a limit and kept in a ledger; nothing is ever computed. Kernels take
//! time of a virtual clock, and graphs do their copies and fills again. What a
//! program must not do (free twice, unmap half a mapping, map over a mapping)
//! is answered by the error that a driver gives.
//!
//! A call enters through an `entry!` function of its family's file, which
//! counts it, fails it if that was asked for, takes the one lock and runs the
//! body on the [`machine::Machine`]. `table.rs` lists every function by name,
//! version and variant; the exports and `cuGetProcAddress` come from it. What
//! is in the public interface but not simulated is there too, and answers
//! `NOT_SUPPORTED`; private tables are refused.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `GPUMEM_SIM_DEVICE` | what the devices are: a name of `gpumem-sim-devices`, such as `a100-80` or `RTX 4090`, which decides name, memory, attributes and context | a generic one |
//! | `GPUMEM_SIM_DEVICES` | number of devices | 1 |
//! | `CUDA_VISIBLE_DEVICES` | which of them the program sees, as a driver reads it at `cuInit` (`visible.rs`) | all |
//! | `GPUMEM_SIM_MEMORY` | memory of each device, such as `24GiB` | the device's; `8GiB` |
//! | `GPUMEM_SIM_CONTEXT` | memory that a context takes on its device, with what is loaded into it | the device's; `0` |
//! | `GPUMEM_SIM_MACHINE` | file through which processes share the devices; made when it is not there | none: each has its own |
//! | `GPUMEM_SIM_DRIVER` | version that the driver states | `13020` |
//! | `GPUMEM_SIM_KERNEL_NS` | device time that a kernel takes, in nanoseconds | `0` |
//! | `GPUMEM_SIM_SMALL_D2H` | copies to the host on a stream of at most so many bytes bring zeros, and a one for "all true" | `0` |
//! | `GPUMEM_SIM_FAIL` | `name:n[=code],...`: the n-th call of a function fails | none |
//! | `GPUMEM_SIM_TRUTH` | file for the truth at exit, `%p` is the process id | none |
//! | `GPUMEM_SIM_NOTES` | file for the notes of a dry run (`notes.rs`), `%p` is the process id | none |
//! | `GPUMEM_SIM_LOG` | file that names what was refused, once each | none |
//! | `GPUMEM_SIM_TRACE` | `1`: name it on stderr | off |
//!
//! # Numbers that a program reads
//!
//! Nothing is computed, so that a number that a program reads from the device is
//! what lay at its address: zero in fresh memory, anything in memory that was
//! used before. Where numbers decide what happens, that can ask for absurd sizes
//! (`nonzero` of a recycled block) or skip what would have been done. With
//! `GPUMEM_SIM_SMALL_D2H=16`, which a dry run sets, every scalar that comes over
//! a stream, which is how PyTorch reads them, is zero:
//!
//! - `nonzero`, `masked_select`, `x[mask]` and `unique` find nothing: sizes are
//!   too small, never absurd; so is that of `repeat_interleave` without
//!   `output_size`.
//! - One number is not zero: a single byte that follows PyTorch's kernel which says
//!   whether all of something is true, as its stream's last work (but for copies of
//!   one byte on the device), is one. So `x.all()` and `torch.equal` say yes, and checks of
//!   arguments pass (those of `torch.distributions`, `isfinite(x).all()`); that of
//!   `torch.normal` is known by the operator. `x.any()`, a comparison of two numbers,
//!   and `all` of the single element that one makes are zero as ever.
//! - `GradScaler` finds no infinity and takes every step, so that the optimizer
//!   makes its state. Without it, garbage can skip all of them. The scale that
//!   it reads back is zero.
//! - `while loss.item() > 0.1` ends at its first look, and never runs for ever
//!   for garbage or NaN. A loop that waits for a number to rise
//!   (`while accuracy < 0.9`) or for `all` to be false does not end: nothing here makes a number rise, and
//!   who runs such a program must bound it by steps or by time. The notes say
//!   who reads numbers, and how often.
//! - A scalar that was really copied to the device comes back as zero, too.
//!
//! # What is not charged
//!
//! Modules and libraries: a driver loads their code lazily, function by function
//! (`CUDA_MODULE_LOADING`), and what it takes for one is not said by the image's
//! size. A context's charge is that of a process in which PyTorch has started, so
//! that what it usually loads is in it.

// The functions bear the driver's names.
#![allow(non_snake_case)]

mod abi;
mod account;
mod backing;
mod clock;
mod config;
mod context;
mod copy;
mod device;
mod entry;
mod errors;
mod event;
mod file;
mod fill;
mod graph;
mod host;
mod ipc;
mod launch;
mod ledger;
mod log;
mod machine;
mod memory;
mod module;
mod notes;
mod operator;
mod pointer;
mod pool;
mod proc_address;
mod process;
mod refused;
mod shared;
mod sparse;
mod stream;
mod table;
mod truth;
mod visible;
mod vmm;
