//! What the environment asks for, read once.

use std::path::PathBuf;
use std::sync::LazyLock;

use gpumem_sim_devices::Device;

use crate::abi::Status;

/// Most devices that can be simulated: each takes its own PCI bus number.
pub(crate) const MAX_DEVICES: usize = 64;

/// The device when none is named: of no maker, with what most programs want.
static GENERIC: Device = Device {
    key: "generic",
    name: "gpumem simulated GPU",
    memory_bytes: 8 << 30,
    memory_within_bytes: 0,
    compute: (9, 0),
    multiprocessors: 132,
    l2_bytes: 50 << 20,
    clock_khz: 1_500_000,
    memory_clock_khz: 2_000_000,
    bus_bits: 5120,
    ecc: true,
    context_bytes: 0,
    context_measured: false,
};

/// The settings of this process.
#[derive(Debug)]
pub(crate) struct Config {
    /// What every device is.
    pub(crate) device: &'static Device,
    pub(crate) devices: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) context_bytes: u64,
    pub(crate) driver_version: i32,
    /// Device time that a kernel takes.
    pub(crate) kernel_ns: u64,
    /// Copies to the host on a stream of at most so many bytes bring zeros.
    pub(crate) small_d2h_bytes: u64,
    pub(crate) failures: Vec<Failure>,
    /// The truth's file, in which `%p` is the process id; so of `notes`.
    pub(crate) truth: Option<String>,
    /// The ledger's file that processes share.
    pub(crate) machine: Option<PathBuf>,
    pub(crate) notes: Option<String>,
}

/// A call that must fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exported name, such as `cuMemAlloc_v2`.
    pub(crate) symbol: String,
    /// Which call, counted from one.
    pub(crate) call: u64,
    pub(crate) status: Status,
}

/// The settings, read from the environment at the first use.
pub(crate) fn get() -> &'static Config {
    static CONFIG: LazyLock<Config> = LazyLock::new(Config::from_environment);
    &CONFIG
}

impl Config {
    fn from_environment() -> Self {
        let device = device();
        Self {
            device,
            devices: setting("GPUMEM_SIM_DEVICES", 1, parse_devices),
            memory_bytes: setting("GPUMEM_SIM_MEMORY", device.memory_bytes, parse_size),
            context_bytes: setting("GPUMEM_SIM_CONTEXT", device.context_bytes, parse_size),
            driver_version: setting("GPUMEM_SIM_DRIVER", 13_020, |text| text.parse().ok()),
            kernel_ns: setting("GPUMEM_SIM_KERNEL_NS", 0, |text| text.parse().ok()),
            small_d2h_bytes: setting("GPUMEM_SIM_SMALL_D2H", 0, parse_size),
            failures: setting("GPUMEM_SIM_FAIL", Vec::new(), parse_failures),
            truth: text("GPUMEM_SIM_TRUTH"),
            machine: text("GPUMEM_SIM_MACHINE").map(PathBuf::from),
            notes: text("GPUMEM_SIM_NOTES"),
        }
    }
}

/// The device that is asked for. An unknown name is said on stderr, with what it
/// may have meant, and the generic device holds.
fn device() -> &'static Device {
    let Some(text) = text("GPUMEM_SIM_DEVICE") else {
        return &GENERIC;
    };
    gpumem_sim_devices::find(&text).unwrap_or_else(|| {
        let keys: Vec<_> = gpumem_sim_devices::matching(&text)
            .iter()
            .map(|device| device.key)
            .collect();
        eprintln!(
            "simulated CUDA driver: GPUMEM_SIM_DEVICE={text} names no device (there are: {}), \
             a generic one of {} bytes holds",
            keys.join(", "),
            GENERIC.memory_bytes
        );
        &GENERIC
    })
}

/// A variable that is set to something.
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The variable's value; one that cannot be read is named on stderr, and the
/// default holds.
fn setting<T>(name: &str, default: T, parse: impl Fn(&str) -> Option<T>) -> T {
    if let Ok(text) = std::env::var(name) {
        if let Some(value) = parse(&text) {
            return value;
        }
        eprintln!("simulated CUDA driver: {name}={text} cannot be read, the default holds");
    }
    default
}

fn parse_devices(text: &str) -> Option<usize> {
    text.parse().ok().filter(|count| *count <= MAX_DEVICES)
}

/// A size in bytes, or in KiB, MiB, GiB or TiB.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// `name:n` or `name:n=code`, separated by commas; without a code the call is
/// out of memory.
fn parse_failures(text: &str) -> Option<Vec<Failure>> {
    text.split(',')
        .filter(|part| !part.trim().is_empty())
        .map(parse_failure)
        .collect()
}

fn parse_failure(text: &str) -> Option<Failure> {
    let (symbol, rest) = text.trim().split_once(':')?;
    let (call, status) = match rest.split_once('=') {
        Some((call, code)) => (call, Status::from_code(code.parse().ok()?)?),
        None => (rest, Status::OUT_OF_MEMORY),
    };
    Some(Failure {
        symbol: symbol.to_owned(),
        call: call.parse().ok()?,
        status,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_size("24GiB"), Some(24 << 30));
        assert_eq!(parse_size("512 MiB"), Some(512 << 20));
        assert_eq!(parse_size("4096"), Some(4096));
        assert_eq!(parse_size("24GB"), None);
        assert_eq!(parse_size("99999999TiB"), None);
        assert_eq!(parse_size(""), None);
    }

    #[test]
    fn failures() {
        let failures = parse_failures("cuMemAlloc_v2:3,cuMemFree_v2:1=700").unwrap();
        assert_eq!(failures[0].status, Status::OUT_OF_MEMORY);
        assert_eq!(
            (failures[0].symbol.as_str(), failures[0].call),
            ("cuMemAlloc_v2", 3)
        );
        assert_eq!(failures[1].status.code(), 700);
        assert_eq!(parse_failures("").unwrap(), vec![]);
        assert!(parse_failures("cuMemAlloc_v2").is_none());
        assert!(parse_failures("cuMemAlloc_v2:1=0").is_none());
    }
}
