//! What a person calls a device.
//!
//! Case, blanks, `-` and `_` do not count, nor do the maker's words in front
//! (`NVIDIA`, `Tesla`, `GeForce`, `RTX`) and `GB` behind: `RTX 4090`, `rtx-4090`,
//! `4090` and the driver's `NVIDIA GeForce RTX 4090` are one. A name that fits
//! several devices of different memory, such as `A100` or `V100`, names none:
//! to choose for the person could tell him that his job fits where it does not.

use crate::{DEVICES, Device};

/// Names beside the key and the driver's.
const ALIASES: &[(&str, &str)] = &[
    // The PCI Express board has the same memory, and NVL always says so.
    ("h100", "h100-sxm"),
    ("h100-80", "h100-sxm"),
    ("h100-sxm-80", "h100-sxm"),
    ("h100-sxm5", "h100-sxm"),
    ("h100-pcie-80", "h100-pcie"),
    ("h100-94", "h100-nvl"),
    ("a100-sxm-40", "a100-40"),
    ("a100-sxm-80", "a100-80"),
    ("a100-pcie-40", "a100-40"),
    ("a100-pcie-80", "a100-80"),
    // Boards with 8 GiB are rare.
    ("rtx-3060", "rtx-3060-12"),
    ("rtx-3080-10", "rtx-3080"),
    ("rtx-6000-ada-generation", "rtx-6000-ada"),
    ("p100-16", "p100"),
];

/// The device that a text names, if it names one.
pub fn find(text: &str) -> Option<&'static Device> {
    let wanted = canonical(text);
    let is_wanted = |name: &str| canonical(name) == wanted;
    let key = ALIASES
        .iter()
        .find_map(|(alias, key)| is_wanted(alias).then_some(*key));
    DEVICES
        .iter()
        .find(|device| key == Some(device.key) || is_wanted(device.key) || is_wanted(device.name))
}

/// The devices whose names begin with a text, for a message that says what it
/// may have meant. All, when none does.
pub fn matching(text: &str) -> Vec<&'static Device> {
    let wanted = canonical(text);
    let begins = |name: &str| canonical(name).starts_with(&wanted);
    let some: Vec<_> = DEVICES
        .iter()
        .filter(|device| begins(device.key) || begins(device.name))
        .collect();
    if some.is_empty() {
        DEVICES.iter().collect()
    } else {
        some
    }
}

/// What is left of a name when that is taken away which does not count.
fn canonical(name: &str) -> String {
    let counted = name
        .chars()
        .filter(|c| !matches!(c, ' ' | '\t' | '-' | '_'));
    let name: String = counted.flat_map(char::to_lowercase).collect();
    let mut rest = name.as_str();
    while let Some(shorter) = ["nvidia", "tesla", "geforce", "rtx"]
        .iter()
        .find_map(|word| rest.strip_prefix(word))
    {
        rest = shorter;
    }
    let rest = rest
        .strip_suffix("gib")
        .or_else(|| rest.strip_suffix("gb"))
        .unwrap_or(rest);
    rest.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<&'static str> {
        find(text).map(|device| device.key)
    }

    #[test]
    fn a_device_has_many_names() {
        for text in [
            "4090",
            "RTX-4090",
            "rtx 4090",
            "rtx_4090",
            "NVIDIA GeForce RTX 4090",
        ] {
            assert_eq!(key(text), Some("rtx-4090"), "{text}");
        }
        assert_eq!(key("A100-80GB"), Some("a100-80"));
        assert_eq!(key("a100 40 GiB"), Some("a100-40"));
        assert_eq!(key("H100"), Some("h100-sxm"));
        assert_eq!(key("A6000"), Some("rtx-a6000"));
        assert_eq!(key("6000 ada"), Some("rtx-6000-ada"));
        assert_eq!(key("A10"), Some("a10"));
        assert_eq!(key("Tesla T4"), Some("t4"));
        for device in DEVICES {
            assert_eq!(key(device.key), Some(device.key));
            assert_eq!(key(device.name), Some(device.key));
        }
    }

    #[test]
    fn what_fits_several_or_none_names_none() {
        for text in ["a100", "V100", "4070", "80", "", "rtx", "mi300x"] {
            assert_eq!(key(text), None, "{text}");
        }
        let keys = |text| {
            matching(text)
                .iter()
                .map(|device| device.key)
                .collect::<Vec<_>>()
        };
        assert_eq!(keys("a100"), ["a100-40", "a100-80"]);
        assert_eq!(keys("4070"), ["rtx-4070-ti"]);
        assert_eq!(keys("mi300x").len(), DEVICES.len());
    }

    #[test]
    fn aliases_lead_to_devices() {
        for (alias, wanted) in ALIASES {
            assert_eq!(key(alias), Some(*wanted), "{alias}");
        }
    }
}
