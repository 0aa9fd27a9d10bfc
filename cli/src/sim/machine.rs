//! Which machine is simulated: `rtx4090,memory=16GiB,count=2`.

use std::str::FromStr;

use gpumem_sim_devices::{DEVICES, Device, find, matching};
use serde::Serialize;

use crate::show::WIDTH;
use crate::show::size::size;
use crate::show::table::{Align, table};
use crate::show::text::{clean, wrap};

/// The device where none is named.
pub(crate) const DEFAULT: &str = "h200";
/// Most devices of one machine: the simulated driver's own limit.
const COUNT: u32 = 64;

/// A machine to simulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// Its devices, all alike.
    pub(crate) device: &'static Device,
    /// Bytes of memory of each.
    pub(crate) memory_bytes: u64,
    /// How many there are.
    pub(crate) count: u32,
}

impl Machine {
    /// `NVIDIA H200 with 140 GiB`, with how many there are.
    pub(crate) fn describe(&self) -> String {
        let times = match self.count {
            1 => String::new(),
            count => format!("{count} x "),
        };
        format!(
            "{times}{} with {}",
            self.device.name,
            size(self.memory_bytes)
        )
    }

    /// The same machine with other memory.
    pub(crate) fn with_memory(self, memory_bytes: u64) -> Result<Self, String> {
        let context_bytes = self.device.context_bytes;
        if memory_bytes <= context_bytes {
            return Err(format!(
                "the memory of a device must be more than the {} that a context takes of an {}",
                size(context_bytes),
                self.device.name
            ));
        }
        Ok(Self {
            memory_bytes,
            ..self
        })
    }

    /// The same machine with so many devices.
    pub(crate) fn with_count(self, count: u32) -> Self {
        Self { count, ..self }
    }
}

impl FromStr for Machine {
    type Err = String;

    /// A device by any of its names, then `memory=SIZE` and `count=N`. Without a device it is [`DEFAULT`].
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',').peekable();
        let name = match parts.next_if(|part| !part.contains('=')) {
            Some(name) if !name.trim().is_empty() => name,
            _ => DEFAULT,
        };
        let device = find(name).ok_or_else(|| unknown(name))?;
        let mut machine = Self {
            device,
            memory_bytes: device.memory_bytes,
            count: 1,
        };
        for part in parts {
            machine = match part.split_once('=') {
                Some(("memory", text)) => machine.with_memory(parse_memory(text)?)?,
                Some(("count", text)) => machine.with_count(parse_count(text)?),
                _ => {
                    return Err(format!(
                        "`{part}` is neither memory=SIZE nor count=N, as in rtx-4090,memory=16GiB,count=2"
                    ));
                }
            };
        }
        Ok(machine)
    }
}

fn unknown(name: &str) -> String {
    let meant = matching(name);
    let keys: Vec<&str> = meant.iter().map(|device| device.key).collect();
    let what = if meant.len() == 1 {
        "is no device that can be simulated"
    } else if meant.len() < DEVICES.len() {
        "may be one of several devices"
    } else {
        "is no device that can be simulated"
    };
    format!(
        "{} {what}. Choose one of:\n  {}",
        clean(name),
        wrap(&keys.join(", "), 2, WIDTH)
    )
}

/// How many devices.
pub(crate) fn parse_count(text: &str) -> Result<u32, String> {
    let count = text.trim().parse().ok();
    count
        .filter(|count| (1..=COUNT).contains(count))
        .ok_or_else(|| format!("the number of devices is from 1 to {COUNT}, as in count=2"))
}

/// The memory of a device: as [`parse_size`], with a unit.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    if text
        .trim()
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return Err(format!(
            "`{text}` has no unit: write {text}GiB for a card with {text} GB"
        ));
    }
    parse_size(text)
}

/// A size in binary units: `24GiB`, `23.5 GiB`, `512MiB`, or bytes.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let number_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(number_end);
    // Cards are sold by "16 GB", and have binary ones.
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let bytes = number
        .parse::<f64>()
        .ok()
        .zip(shift)
        .map(|(number, shift)| {
            // Fractions are of whole units, so that nothing is lost that a person can write.
            (number * (1u64 << shift) as f64).round()
        });
    bytes
        .filter(|bytes| (1.0..=2f64.powi(46)).contains(bytes))
        .map(|bytes| bytes as u64)
        .ok_or_else(|| {
            format!(
                "`{text}` is no size of memory: give KiB, MiB, GiB or TiB, as in 24GiB or 512MiB"
            )
        })
}

/// What small copies from the device bring: numbers that a kernel would have computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct SmallCopies {
    /// Copies of at most so many bytes bring zeros; 0: all bring what lies in the memory.
    pub(crate) zeroed_bytes: u64,
}

/// Zeros for all that a program reads as a number. What lies in memory may be anything: a gradient scaler that reads it as
/// infinite skips the optimizer's steps, and the optimizer's state is never made.
impl Default for SmallCopies {
    fn default() -> Self {
        Self { zeroed_bytes: 16 }
    }
}

impl FromStr for SmallCopies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let zeroed_bytes = match text {
            "off" | "0" => 0,
            text => parse_size(text).map_err(|_| {
                format!("`{text}` is neither `off` nor a number of bytes, as in --small-d2h 16")
            })?,
        };
        Ok(Self { zeroed_bytes })
    }
}

/// The table of devices.
pub(crate) fn devices() -> String {
    let columns = [
        ("DEVICE", Align::Left),
        ("MEMORY", Align::Right),
        ("CONTEXT", Align::Right),
        ("COMPUTE", Align::Right),
        ("NAME", Align::Left),
    ];
    let rows: Vec<Vec<String>> = DEVICES
        .iter()
        .map(|device| {
            let (major, minor) = device.compute;
            let about = if device.context_measured { "" } else { "~" };
            vec![
                device.key.into(),
                size(device.memory_bytes),
                format!("{about}{}", size(device.context_bytes)),
                format!("{major}.{minor}"),
                device.name.into(),
            ]
        })
        .collect();
    let note = format!(
        "MEMORY is what a program can see of it. CONTEXT is what PyTorch's start takes (~: estimated). \
         Case, blanks, - and _ do not count in a name. Without one it is the {DEFAULT}."
    );
    format!("{}\n{}\n", table(&columns, &rows), wrap(&note, 0, WIDTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_a_device_with_changes() {
        let machine: Machine = "RTX 4090,memory=16GiB,count=2".parse().unwrap();
        assert_eq!(machine.device.key, "rtx-4090");
        assert_eq!((machine.memory_bytes, machine.count), (16 << 30, 2));
        let machine: Machine = "memory=24GiB".parse().unwrap();
        assert_eq!(machine.device.key, DEFAULT);
        assert_eq!(machine.describe(), "NVIDIA H200 with 24.0 GiB");
        let plain: Machine = "".parse().unwrap();
        assert_eq!(plain.memory_bytes, plain.device.memory_bytes);
    }

    #[test]
    fn what_is_no_machine_is_refused_with_the_choices() {
        let why = |text: &str| text.parse::<Machine>().unwrap_err();
        assert!(why("voodoo2").contains("h200, "), "{}", why("voodoo2"));
        assert!(why("a100").contains("Choose one of:\n  a100-40, a100-80"));
        assert!(why("t4,memory=16GX").contains("KiB, MiB, GiB or TiB"));
        assert!(why("t4,memory=1MiB").contains("more than"));
        assert!(why("t4,count=0").contains("from 1 to 64"));
        assert!(why("t4,speed=2").contains("neither memory=SIZE nor count=N"));
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(parse_size("24GiB"), Ok(24 << 30));
        assert_eq!(parse_size("23.5 GiB"), Ok(47 << 29));
        assert_eq!(parse_size("4096"), Ok(4096));
        for wrong in [
            "", "GiB", "-1GiB", "1.2.3GiB", "0", "99999TiB", "8 GX", "NaN",
        ] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_memory("16 GB"), Ok(16 << 30));
        assert_eq!(parse_memory("16g"), Ok(16 << 30));
        assert!(parse_memory("16").unwrap_err().contains("16GiB"));
        assert_eq!("off".parse(), Ok(SmallCopies { zeroed_bytes: 0 }));
        assert_eq!("16".parse(), Ok(SmallCopies { zeroed_bytes: 16 }));
        assert!("on".parse::<SmallCopies>().is_err());
    }

    #[test]
    fn the_table_fits() {
        let table = devices();
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH));
        assert!(table.contains("\nrtx-4090 "));
    }
}
