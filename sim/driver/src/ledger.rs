//! The account of each device: what is charged, the most that ever was, and
//! the limit.

use serde::Serialize;

/// Device memory is taken in granules of this size.
pub(crate) const GRANULE_BYTES: u64 = 2 << 20;

/// A device that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct DeviceId(usize);

impl DeviceId {
    /// The ordinal that the program knows it by.
    pub(crate) fn ordinal(self) -> i32 {
        // At most `config::MAX_DEVICES`.
        self.0 as i32
    }

    /// Its place in a list of all devices.
    pub(crate) fn index(self) -> usize {
        self.0
    }
}

/// The device has less free memory than was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl From<OutOfMemory> for crate::abi::Status {
    fn from(_: OutOfMemory) -> Self {
        Self::OUT_OF_MEMORY
    }
}

/// The account of one device, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account {
    pub(crate) limit_bytes: u64,
    pub(crate) charged_bytes: u64,
    pub(crate) peak_bytes: u64,
}

/// The accounts of all devices.
pub(crate) struct Ledger {
    accounts: Vec<Account>,
}

/// `size_bytes` in whole granules; `None` beyond any memory.
pub(crate) fn granules(size_bytes: u64) -> Option<u64> {
    size_bytes.checked_next_multiple_of(GRANULE_BYTES)
}

impl Ledger {
    pub(crate) fn new(devices: usize, limit_bytes: u64) -> Self {
        let account = Account {
            limit_bytes,
            charged_bytes: 0,
            peak_bytes: 0,
        };
        Self {
            accounts: vec![account; devices],
        }
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.accounts.len()).map(DeviceId)
    }

    pub(crate) fn device(&self, ordinal: i32) -> Option<DeviceId> {
        let index = usize::try_from(ordinal).ok()?;
        (index < self.accounts.len()).then_some(DeviceId(index))
    }

    pub(crate) fn account(&self, device: DeviceId) -> Account {
        self.accounts[device.0]
    }

    /// Takes `bytes` of the device's memory, or leaves all as it was.
    pub(crate) fn charge(&mut self, device: DeviceId, bytes: u64) -> Result<(), OutOfMemory> {
        let account = &mut self.accounts[device.0];
        let charged = account
            .charged_bytes
            .checked_add(bytes)
            .ok_or(OutOfMemory)?;
        if charged > account.limit_bytes {
            return Err(OutOfMemory);
        }
        account.charged_bytes = charged;
        account.peak_bytes = account.peak_bytes.max(charged);
        Ok(())
    }

    /// Gives back what was charged.
    pub(crate) fn discharge(&mut self, device: DeviceId, bytes: u64) {
        let account = &mut self.accounts[device.0];
        debug_assert!(
            bytes <= account.charged_bytes,
            "more is given back than was taken"
        );
        account.charged_bytes -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_charge_changes_nothing() {
        let mut ledger = Ledger::new(2, 10);
        let [first, second] = [0, 1].map(|ordinal| ledger.device(ordinal).unwrap());
        ledger.charge(first, 8).unwrap();
        assert_eq!(ledger.charge(first, 3), Err(OutOfMemory));
        assert_eq!(ledger.charge(first, u64::MAX), Err(OutOfMemory));
        ledger.charge(second, 10).unwrap();
        ledger.discharge(first, 8);
        let account = ledger.account(first);
        assert_eq!((account.charged_bytes, account.peak_bytes), (0, 8));
        assert!(ledger.device(2).is_none() && ledger.device(-1).is_none());
    }
}
