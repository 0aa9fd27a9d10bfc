//! The account of each device: what is charged, the most that ever was, and
//! the limit.
//!
//! A ledger is private, or shared with other processes through a file
//! ([`crate::shared`]): then the limit is for all of them together, and each
//! knows what the others have.

use std::path::Path;

use serde::Serialize;

use crate::shared::{Refusal, Shared};

/// Device memory is taken in granules of this size.
pub(crate) const GRANULE_BYTES: u64 = 2 << 20;

/// A device of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct DeviceId(usize);

impl DeviceId {
    /// Its place among all devices of the machine: the same in every process,
    /// whichever devices that one sees ([`crate::visible`]).
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
    /// Taken by this process.
    pub(crate) charged_bytes: u64,
    /// The most that this process has ever taken.
    pub(crate) peak_bytes: u64,
    /// The most that all processes had taken when this one took some.
    pub(crate) common_peak_bytes: u64,
    /// How often there was less than was asked for.
    pub(crate) refusals: u64,
}

/// The accounts of all devices.
pub(crate) struct Ledger {
    accounts: Vec<Account>,
    shared: Option<Shared>,
}

/// `size_bytes` in whole granules; `None` beyond any memory.
pub(crate) fn granules(size_bytes: u64) -> Option<u64> {
    size_bytes.checked_next_multiple_of(GRANULE_BYTES)
}

impl Ledger {
    /// The ledger of so many devices, shared through `file` where one is given.
    /// A file that cannot be used is named on stderr, and the ledger is private.
    pub(crate) fn new(devices: usize, limit_bytes: u64, file: Option<&Path>) -> Self {
        let account = Account {
            limit_bytes,
            charged_bytes: 0,
            peak_bytes: 0,
            common_peak_bytes: 0,
            refusals: 0,
        };
        let shared = file.and_then(|file| {
            Shared::open(file)
                .inspect_err(|error| {
                    eprintln!(
                        "simulated CUDA driver: GPUMEM_SIM_MACHINE={}: {error}; this process \
                         shares its devices with no other",
                        file.display()
                    );
                })
                .ok()
        });
        Self {
            accounts: vec![account; devices],
            shared,
        }
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = DeviceId> + use<> {
        (0..self.accounts.len()).map(DeviceId)
    }

    /// The device of the machine's number, whether or not the program sees it.
    pub(crate) fn device(&self, number: i32) -> Option<DeviceId> {
        let index = usize::try_from(number).ok()?;
        (index < self.accounts.len()).then_some(DeviceId(index))
    }

    pub(crate) fn account(&self, device: DeviceId) -> Account {
        self.accounts[device.0]
    }

    /// What other processes have taken of a device: process id and bytes.
    pub(crate) fn other_processes(&self, device: DeviceId) -> Vec<(u32, u64)> {
        let shared = self.shared.as_ref();
        shared.map_or_else(Vec::new, |shared| shared.other_processes(device.0))
    }

    /// What all processes have taken of a device, at most its memory.
    pub(crate) fn taken_bytes(&self, device: DeviceId) -> u64 {
        let account = self.account(device);
        let others = self.other_processes(device);
        others
            .iter()
            .fold(account.charged_bytes, |sum, (_, bytes)| {
                sum.saturating_add(*bytes)
            })
            .min(account.limit_bytes)
    }

    /// Takes `bytes` of the device's memory, or leaves all as it was.
    pub(crate) fn charge(&mut self, device: DeviceId, bytes: u64) -> Result<(), OutOfMemory> {
        match self.take(device, bytes) {
            Some(common) => {
                let account = &mut self.accounts[device.0];
                account.charged_bytes += bytes;
                account.peak_bytes = account.peak_bytes.max(account.charged_bytes);
                account.common_peak_bytes = account.common_peak_bytes.max(common);
                Ok(())
            }
            None => {
                self.accounts[device.0].refusals += 1;
                Err(OutOfMemory)
            }
        }
    }

    /// What all processes have with `bytes` more, if that is within the limit.
    fn take(&mut self, device: DeviceId, bytes: u64) -> Option<u64> {
        let Account {
            limit_bytes,
            charged_bytes,
            ..
        } = self.accounts[device.0];
        let own = charged_bytes.checked_add(bytes)?;
        if own > limit_bytes {
            return None;
        }
        // Nothing is no charge: it needs no place among the processes.
        let (Some(shared), true) = (&mut self.shared, bytes > 0) else {
            return Some(own);
        };
        let accounts = &self.accounts;
        let has = |device: usize| {
            accounts
                .get(device)
                .map_or(0, |account| account.charged_bytes)
        };
        match shared.charge(device.0, bytes, limit_bytes, has) {
            Ok(common) => Some(common),
            Err(Refusal::Full) => None,
            Err(Refusal::NoSlot) => {
                eprintln!(
                    "simulated CUDA driver: the machine has no place for one more process; this \
                     one goes on with devices of its own"
                );
                self.shared = None;
                Some(own)
            }
        }
    }

    /// Gives back what was charged.
    pub(crate) fn discharge(&mut self, device: DeviceId, bytes: u64) {
        let account = &mut self.accounts[device.0];
        debug_assert!(
            bytes <= account.charged_bytes,
            "more is given back than was taken"
        );
        account.charged_bytes -= bytes;
        if let Some(shared) = &self.shared {
            shared.discharge(device.0, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_charge_changes_nothing() {
        let mut ledger = Ledger::new(2, 10, None);
        let [first, second] = [0, 1].map(|number| ledger.device(number).unwrap());
        ledger.charge(first, 8).unwrap();
        assert_eq!(ledger.charge(first, 3), Err(OutOfMemory));
        assert_eq!(ledger.charge(first, u64::MAX), Err(OutOfMemory));
        ledger.charge(second, 10).unwrap();
        ledger.discharge(first, 8);
        let account = ledger.account(first);
        assert_eq!((account.charged_bytes, account.peak_bytes), (0, 8));
        assert_eq!(account.refusals, 2);
        assert!(ledger.device(2).is_none() && ledger.device(-1).is_none());
    }
}
