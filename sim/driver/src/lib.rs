//! A simulated CUDA driver, which programs take for `libcuda.so.1`.
//!
//! Memory is real (lazily backed host memory, copied by real copies), counted
//! against a limit and kept in a ledger; nothing is ever computed. Kernels take
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
//! | `GPUMEM_SIM_DEVICES` | number of devices | 1 |
//! | `GPUMEM_SIM_MEMORY` | memory of each device, such as `24GiB` | `8GiB` |
//! | `GPUMEM_SIM_CONTEXT` | memory that a context takes on its device | `0` |
//! | `GPUMEM_SIM_DRIVER` | version that the driver states | `13020` |
//! | `GPUMEM_SIM_KERNEL_NS` | device time that a kernel takes, in nanoseconds | `0` |
//! | `GPUMEM_SIM_SMALL_D2H` | copies to the host on a stream of at most so many bytes bring zeros: counts that a kernel would have computed, which are else whatever lay there | `0` |
//! | `GPUMEM_SIM_FAIL` | `name:n[=code],...`: the n-th call of a function fails | none |
//! | `GPUMEM_SIM_TRUTH` | file for the truth at exit, `%p` is the process id | none |
//! | `GPUMEM_SIM_LOG` | file that names what was refused, once each | none |
//! | `GPUMEM_SIM_TRACE` | `1`: name it on stderr | off |

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
mod pointer;
mod pool;
mod proc_address;
mod refused;
mod stream;
mod table;
mod truth;
mod vmm;
