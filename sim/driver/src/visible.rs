//! Which devices the program sees, and in which order: `CUDA_VISIBLE_DEVICES`.
//!
//! The variable lists devices of the machine, by number or by the beginning of
//! their UUID; the program counts those listed from zero. The first name that is
//! no device's ends the list, and an empty list hides all (CUDA Programming
//! Guide, "CUDA Environment Variables"). What the guide leaves open is as PyTorch
//! found it at the driver (pytorch/pytorch#84879, #92315): a number is what
//! `strtol` reads, a list that begins with a UUID holds UUIDs alone, and a device
//! named twice hides all.
//!
//! Only the numbers by which the program names devices change; accounts, UUIDs,
//! PCI addresses and the management library are of the machine.
//! `CUDA_DEVICE_ORDER` has nothing to order: all devices are equally fast, and
//! numbered by PCI address.

use crate::device::uuid_text;
use crate::ledger::DeviceId;

const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";
/// What the UUID of an undivided device begins with.
const UUID: &str = "GPU-";
/// `CU_DEVICE_INVALID`.
const INVALID: i32 = -2;

/// The devices that the program sees, by its ordinals.
#[derive(Debug)]
pub(crate) struct Visible(Vec<DeviceId>);

impl Visible {
    /// No device.
    pub(crate) const NONE: Self = Self(Vec::new());

    /// Of all `devices` of the machine those that the environment shows now.
    pub(crate) fn of_environment(devices: Vec<DeviceId>) -> Self {
        let Some(list) = std::env::var_os(VARIABLE) else {
            return Self(devices);
        };
        let list = list.to_string_lossy();
        let visible = Self::of_list(&list, &devices);
        if visible.0.is_empty() {
            let count = devices.len();
            crate::log::line(&format!("{VARIABLE}={list} shows none of {count} devices"));
        }
        visible
    }

    fn of_list(list: &str, devices: &[DeviceId]) -> Self {
        let by_uuid = list.starts_with(UUID);
        let mut visible = Vec::new();
        for name in list.split(',') {
            let found = if by_uuid {
                by_uuid_prefix(name, devices)
            } else {
                number(name).and_then(|number| devices.get(number).copied())
            };
            let Some(device) = found else { break };
            if visible.contains(&device) {
                return Self::NONE;
            }
            visible.push(device);
        }
        Self(visible)
    }

    /// The devices in the program's order.
    pub(crate) fn devices(&self) -> &[DeviceId] {
        &self.0
    }

    /// The device that the program knows by an ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Option<DeviceId> {
        self.0.get(usize::try_from(ordinal).ok()?).copied()
    }

    /// The ordinal that the program knows a device by, if it sees it.
    pub(crate) fn ordinal(&self, device: DeviceId) -> Option<i32> {
        let place = self.0.iter().position(|visible| *visible == device);
        // At most `config::MAX_DEVICES`.
        place.map(|place| place as i32)
    }

    /// The ordinal, or `CU_DEVICE_INVALID` for a device that the program does not
    /// see: memory of one can still be opened here.
    pub(crate) fn ordinal_or_invalid(&self, device: DeviceId) -> i32 {
        self.ordinal(device).unwrap_or(INVALID)
    }
}

/// The one device whose UUID begins so.
fn by_uuid_prefix(prefix: &str, devices: &[DeviceId]) -> Option<DeviceId> {
    let mut found = devices
        .iter()
        .filter(|device| prefix.starts_with(UUID) && uuid_text(**device).starts_with(prefix));
    let device = found.next()?;
    found.next().is_none().then_some(*device)
}

/// The number that a text begins with, after blanks and a sign.
fn number(text: &str) -> Option<usize> {
    let text = text.trim_ascii_start();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let count = digits.bytes().take_while(u8::is_ascii_digit).count();
    let number = digits.get(..count)?.parse().ok()?;
    (number == 0 || !text.starts_with('-')).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Ledger;

    const NONE: [usize; 0] = [];

    /// What a program sees of so many devices, by the machine's numbers.
    fn seen(list: &str, count: usize) -> Vec<usize> {
        let devices: Vec<_> = Ledger::new(count, 1, None).devices().collect();
        let visible = Visible::of_list(list, &devices);
        visible.devices().iter().map(|d| d.index()).collect()
    }

    fn uuids(count: usize) -> Vec<String> {
        let devices = Ledger::new(count, 1, None).devices();
        devices.map(uuid_text).collect()
    }

    #[test]
    fn the_order_is_the_lists() {
        assert_eq!(seen("2,0", 4), [2, 0]);
        assert_eq!(seen("3", 4), [3]);
    }

    #[test]
    fn what_is_no_device_ends_the_list() {
        assert_eq!(seen("0,2,-1,1", 3), [0, 2]);
        assert_eq!(seen("1,3,0", 3), [1]);
        assert_eq!(seen("1,,0", 3), [1]);
        assert_eq!(seen("1,MIG-0,0", 3), [1]);
        assert_eq!(seen("1,99999999999999999999,0", 3), [1]);
        // Behind the end nothing is looked at.
        assert_eq!(seen("1,-1,1", 3), [1]);
        for hides_all in ["", "-1", "none", "NoDevFiles", "3", " ", "MIG-0"] {
            assert_eq!(seen(hides_all, 3), NONE, "{hides_all}");
        }
    }

    #[test]
    fn numbers_are_read_as_in_c() {
        assert_eq!(seen("1gpu2,2ampere", 3), [1, 2]);
        assert_eq!(seen(" 2,\t+1, -0", 3), [2, 1, 0]);
        assert_eq!(seen("+-1", 3), NONE);
    }

    #[test]
    fn a_device_named_twice_hides_all() {
        assert_eq!(seen("0,1,2,1", 3), NONE);
        let uuid = &uuids(3)[1];
        assert_eq!(seen(&format!("{uuid},{}", &uuid[..12]), 3), NONE);
    }

    #[test]
    fn uuids_may_be_abbreviated_while_one_is_meant() {
        let all = uuids(3);
        assert_eq!(seen(&format!("{},{}", all[2], &all[0][..12]), 3), [2, 0]);
        assert_eq!(seen("GPU-", 3), NONE);
        assert_eq!(seen("GPU-", 1), [0]);
        assert_eq!(seen("GPU-,", 1), [0]);
        assert_eq!(seen(&format!("{}0", all[0]), 3), NONE);
    }

    #[test]
    fn numbers_and_uuids_do_not_mix() {
        let uuid = &uuids(3)[2];
        assert_eq!(seen(&format!("{uuid},1"), 3), [2]);
        assert_eq!(seen(&format!("1,{uuid}"), 3), [1]);
    }
}
