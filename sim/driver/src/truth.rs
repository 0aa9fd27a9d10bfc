//! The truth: what is live, what was charged, how often each function was
//! called and which errors it returned. Written at exit, and on demand.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde::Serialize;

use crate::config;
use crate::device;
use crate::file;
use crate::ledger::DeviceId;
use crate::machine::{self, Machine};
use crate::memory::Kind;
use crate::stream::StreamId;
use crate::table;

/// The whole of it, as JSON.
#[derive(Serialize)]
struct Truth {
    schema: &'static str,
    pid: u32,
    devices: Vec<DeviceTruth>,
    host: Host,
    live: Vec<Object>,
    calls: BTreeMap<&'static str, u64>,
    errors: BTreeMap<&'static str, BTreeMap<i32, u64>>,
}

#[derive(Serialize)]
struct DeviceTruth {
    /// The machine's number, here and in live objects.
    device: DeviceId,
    /// The number by which the program knows it; null when it does not see it.
    ordinal: Option<i32>,
    uuid: String,
    pci: String,
    memory_bytes: u64,
    /// Taken now, in granules: the sum of the live objects' `charged_bytes`.
    charged_bytes: u64,
    peak_charged_bytes: u64,
    /// What live allocations, blocks and physical memory asked for.
    size_bytes: u64,
}

#[derive(Serialize)]
struct Host {
    pinned_bytes: u64,
    registered_bytes: u64,
}

/// A live object; `address` or `handle` says which.
#[derive(Default, Serialize)]
struct Object {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handle: Option<u64>,
    /// What was asked for; of a pool, what its blocks use.
    size_bytes: u64,
    /// What it takes on the device by itself; of a pool, what it has reserved.
    charged_bytes: u64,
    device: Option<DeviceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    physical: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mappings: Option<u64>,
}

impl Machine {
    fn truth(&self) -> Truth {
        let live = self.live_objects();
        let sum = |kind: &str| {
            live.iter()
                .filter(|object| object.kind == kind)
                .map(|o| o.size_bytes)
                .sum()
        };
        Truth {
            schema: "gpumem.sim-truth/1",
            pid: std::process::id(),
            devices: self
                .ledger
                .devices()
                .map(|device| self.device_truth(device, &live))
                .collect(),
            host: Host {
                pinned_bytes: sum("pinned"),
                registered_bytes: sum("registered"),
            },
            calls: table::tallies()
                .map(|tally| (tally.symbol, tally.calls()))
                .filter(|(_, calls)| *calls > 0)
                .collect(),
            errors: table::tallies()
                .map(|tally| (tally.symbol, tally.errors()))
                .filter(|(_, errors)| !errors.is_empty())
                .collect(),
            live,
        }
    }

    fn device_truth(&self, device: DeviceId, live: &[Object]) -> DeviceTruth {
        let account = self.ledger.account(device);
        DeviceTruth {
            device,
            ordinal: self.visible().ordinal(device),
            uuid: device::uuid_text(device),
            pci: device::pci_text(device),
            memory_bytes: account.limit_bytes,
            charged_bytes: account.charged_bytes,
            peak_charged_bytes: account.peak_bytes,
            size_bytes: live
                .iter()
                .filter(|object| object.device == Some(device))
                .filter(|object| matches!(object.kind, "device" | "pool-block" | "physical"))
                .map(|object| object.size_bytes)
                .sum(),
        }
    }

    fn live_objects(&self) -> Vec<Object> {
        let mut live = Vec::new();
        for (handle, context) in self.contexts.active() {
            live.push(Object {
                kind: "context",
                handle: Some(handle),
                charged_bytes: context.charged_bytes,
                device: Some(context.device),
                ..Object::default()
            });
        }
        for (address, allocation) in self.memory.all() {
            let (kind, pool, stream) = match allocation.kind {
                Kind::Device { .. } => ("device", None, None),
                Kind::Managed => ("managed", None, None),
                Kind::PoolBlock { pool, stream } => ("pool-block", Some(pool), Some(name(stream))),
                Kind::Pinned { .. } => ("pinned", None, None),
                Kind::Registered { .. } => ("registered", None, None),
                Kind::Imported => ("imported", None, None),
                Kind::Variable => ("variable", None, None),
            };
            live.push(Object {
                kind,
                address: Some(address),
                size_bytes: allocation.size_bytes,
                charged_bytes: allocation.charged_bytes,
                device: allocation.device,
                context: allocation.context,
                pool,
                stream,
                ..Object::default()
            });
        }
        self.add_pools(&mut live);
        self.add_vmm(&mut live);
        for (handle, stream) in self.streams.all() {
            live.push(handle_object(
                "stream",
                handle,
                stream.device,
                stream.context,
            ));
        }
        for (handle, event) in self.events.all() {
            live.push(handle_object("event", handle, event.device, event.context));
        }
        live
    }

    fn add_pools(&self, live: &mut Vec<Object>) {
        for (handle, pool) in self.pools.all() {
            // A default pool that was never used is no object of the program's.
            if pool.default && pool.reserved_bytes == 0 {
                continue;
            }
            live.push(Object {
                kind: "pool",
                handle: Some(handle),
                size_bytes: pool.used_bytes,
                charged_bytes: pool.reserved_bytes,
                device: Some(pool.device),
                ..Object::default()
            });
        }
    }

    fn add_vmm(&self, live: &mut Vec<Object>) {
        for (handle, physical) in self.vmm.physical() {
            live.push(Object {
                kind: "physical",
                handle: Some(handle),
                size_bytes: physical.size_bytes,
                charged_bytes: physical.device.map_or(0, |_| physical.size_bytes),
                device: physical.device,
                references: Some(physical.references),
                mappings: Some(physical.mappings),
                ..Object::default()
            });
        }
        for (address, size_bytes) in self.vmm.reservations() {
            live.push(Object {
                kind: "reservation",
                address: Some(address),
                size_bytes,
                ..Object::default()
            });
        }
        for (address, mapping) in self.vmm.mappings() {
            live.push(Object {
                kind: "mapping",
                address: Some(address),
                size_bytes: mapping.size_bytes,
                device: mapping.device,
                physical: Some(mapping.physical),
                ..Object::default()
            });
        }
    }
}

fn handle_object(kind: &'static str, handle: u64, device: DeviceId, context: u64) -> Object {
    Object {
        kind,
        handle: Some(handle),
        device: Some(device),
        context: Some(context),
        ..Object::default()
    }
}

fn name(stream: StreamId) -> String {
    match stream {
        StreamId::Legacy => "legacy".to_owned(),
        StreamId::PerThread => "per-thread".to_owned(),
        StreamId::Created(handle) => format!("{handle:#x}"),
    }
}

/// Writes the truth of this instant, whole or not at all.
fn write(path: &Path) -> io::Result<()> {
    // The lock is held while the truth is read only: threads that still run
    // may go on, and what they do later is not in it.
    let truth = machine::lock().truth();
    let mut text = serde_json::to_vec(&truth)?;
    text.push(b'\n');
    file::replace(path, &text)
}

/// Writes the truth to a file of the program's choice: 0, or -1 when `path` is
/// NULL, when the file cannot be written, or in a forked child. For tests; not
/// part of CUDA.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn gpumem_sim_truth(path: *const c_char) -> i32 {
    if path.is_null() || machine::forked() {
        return -1;
    }
    // SAFETY: not NULL; the caller vouches for a zero-ended string.
    let path = unsafe { CStr::from_ptr(path) };
    match write(Path::new(OsStr::from_bytes(path.to_bytes()))) {
        Ok(()) => 0,
        Err(_) => -1,
    }
}

/// Runs after all exit handlers and destructors of the program, whichever
/// thread called `exit`. What never called `cuInit`, or was forked from what
/// did, has no truth of its own.
extern "C" fn at_exit() {
    let Some(pattern) = &config::get().truth else {
        return;
    };
    if machine::forked() || !machine::lock().initialised {
        return;
    }
    let path = file::of_process(pattern);
    if let Err(error) = write(&path) {
        eprintln!(
            "simulated CUDA driver: {} cannot be written: {error}",
            path.display()
        );
    }
}

#[used]
// SAFETY: the section holds pointers to functions without parameters.
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;
