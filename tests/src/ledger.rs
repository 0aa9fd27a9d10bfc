//! The driver's account and the recorded map in one form: who is alive, where, how large, on which device.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use gpumem_collector::model::Process;
use gpumem_wire::{DeviceOrdinal, LiveObject, Object};
use serde_json::Value;

/// A live object as both sides can tell it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// `device`, `managed`, `pinned`, `registered`, `pool-block`, `pool`, `physical`, `reservation`, `mapping` or `context`.
    pub kind: &'static str,
    /// Its address or handle, as the program has it.
    pub value: u64,
    /// Its bytes: those that were taken; 0 for a context and a pool.
    pub bytes: u64,
    /// Its device; `None` for host memory and for what has no device of its own.
    pub device: Option<i64>,
    /// Of physical memory: references by handle, and mappings. Of a mapping: the handle of what it shows, and 0.
    pub links: (u64, u64),
}

/// All live objects. Two may be alike but for their links only if a handle was used again.
pub type Ledger = BTreeSet<Entry>;

/// The kinds of the driver's truth that the shim watches.
const KINDS: [&str; 10] = [
    "context",
    "device",
    "managed",
    "mapping",
    "physical",
    "pinned",
    "pool",
    "pool-block",
    "registered",
    "reservation",
];

/// The driver's account, from its truth, without the pools in `but_pools`.
#[track_caller]
pub fn of_driver(truth: &Value, but_pools: &[u64]) -> Ledger {
    let live = truth["live"].as_array().expect("a list of live objects");
    live.iter()
        .filter_map(|object| {
            let name = object["kind"].as_str().expect("a kind");
            let kind = KINDS.into_iter().find(|kind| *kind == name)?;
            let number = |key: &str| object[key].as_u64();
            let value = number("address").or(number("handle")).expect("a place");
            if kind == "pool" && but_pools.contains(&value) {
                return None;
            }
            Some(Entry {
                kind,
                value,
                bytes: match kind {
                    "context" | "pool" => 0,
                    _ => number("size_bytes").expect("a size"),
                },
                device: match kind {
                    "mapping" => None,
                    _ => object["device"].as_i64(),
                },
                links: match kind {
                    "physical" => (
                        number("references").expect("references"),
                        number("mappings").expect("mappings"),
                    ),
                    "mapping" => (number("physical").expect("physical memory"), 0),
                    _ => (0, 0),
                },
            })
        })
        .collect()
}

/// The recorded map of a process.
#[track_caller]
pub fn of_model(process: &Process) -> Ledger {
    let live = process.live();
    let entries: Vec<Entry> = live
        .iter()
        .map(|object| Entry {
            kind: kind(object),
            value: object.value,
            bytes: object.bytes,
            device: match (object.object, object.device) {
                (Object::Mapping, _) | (_, DeviceOrdinal::HOST | DeviceOrdinal::UNKNOWN) => None,
                (_, DeviceOrdinal(device)) => Some(device.into()),
            },
            links: match object.object {
                Object::Physical => (object.references.into(), object.mappings.into()),
                Object::Mapping => (shown_by(process, object), 0),
                _ => (0, 0),
            },
        })
        .collect();
    let count = entries.len();
    let ledger = Ledger::from_iter(entries);
    assert_eq!(ledger.len(), count, "an object is in the map twice");
    ledger
}

fn kind(object: &LiveObject) -> &'static str {
    match object.object {
        Object::Context => "context",
        Object::DeviceAllocation => "device",
        Object::ManagedAllocation => "managed",
        Object::PoolBlock => "pool-block",
        Object::Pool => "pool",
        Object::Physical => "physical",
        Object::Reservation => "reservation",
        Object::Mapping => "mapping",
        Object::Block => "block",
        Object::PinnedHost => "pinned",
        Object::RegisteredHost => "registered",
    }
}

/// The handle of the physical memory that a mapping shows; 0 where it is not known.
fn shown_by(process: &Process, mapping: &LiveObject) -> u64 {
    let physical = process.live().get(Object::Physical, mapping.owner);
    physical.map_or(0, |physical| physical.value)
}

/// Fails unless both are equal, and says what differs.
#[track_caller]
pub fn assert_equal(driver: &Ledger, model: &Ledger) {
    let mut text = String::new();
    for (title, entries) in [
        (
            "only in the driver",
            driver.difference(model).collect::<Vec<_>>(),
        ),
        ("only in the map", model.difference(driver).collect()),
    ] {
        for entry in entries.iter().take(20) {
            let _ = writeln!(text, "{title}: {entry:x?}");
        }
        if entries.len() > 20 {
            let _ = writeln!(text, "{title}: {} more", entries.len() - 20);
        }
    }
    assert!(text.is_empty(), "the map is not the driver's:\n{text}");
}

/// How many objects of each kind are alive.
pub fn kinds(ledger: &Ledger) -> BTreeMap<&'static str, usize> {
    let mut kinds = BTreeMap::new();
    for entry in ledger {
        *kinds.entry(entry.kind).or_default() += 1;
    }
    kinds
}

/// The bytes of a process's device allocations, in order.
pub fn allocations(process: &Process) -> Vec<u64> {
    let live = process.live();
    let mut bytes: Vec<u64> = live
        .iter()
        .filter(|object| object.object == Object::DeviceAllocation)
        .map(|object| object.bytes)
        .collect();
    bytes.sort_unstable();
    bytes
}
