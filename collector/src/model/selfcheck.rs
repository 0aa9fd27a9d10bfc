//! The self-check: torch gives its own totals with every block, and they are compared with ours at that very event.

/// A total of torch's that was not ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// When, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// The number of the event.
    pub seq: u64,
    /// Torch's total.
    pub torch_bytes: u64,
    /// Ours, with the differences reported before already taken into account.
    pub our_bytes: i128,
}

/// The comparisons of one total on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfCheck {
    /// How many totals were compared.
    pub checks: u64,
    /// How many of them differed.
    pub mismatches: u64,
    /// The first that differed.
    pub first: Option<Mismatch>,
    /// Torch's total less ours, at the last comparison: memory that we do not know of (or, below zero, that torch does not).
    /// Kept so that one event that was missed is reported once and not for ever.
    pub offset_bytes: i128,
}

impl SelfCheck {
    /// Compares.
    pub fn check(&mut self, torch_bytes: u64, our_bytes: u64, time_ns: u64, seq: u64) {
        self.checks += 1;
        let expected = i128::from(our_bytes) + self.offset_bytes;
        if expected == i128::from(torch_bytes) {
            return;
        }
        self.mismatches += 1;
        self.first.get_or_insert(Mismatch {
            time_ns,
            seq,
            torch_bytes,
            our_bytes: expected,
        });
        self.offset_bytes = i128::from(torch_bytes) - i128::from(our_bytes);
    }
}

/// Both of torch's totals on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorchChecks {
    /// Live blocks.
    pub allocated: SelfCheck,
    /// Segments.
    pub reserved: SelfCheck,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_miss_is_one_mismatch() {
        let mut check = SelfCheck::default();
        check.check(10, 10, 1, 1);
        check.check(30, 20, 2, 2);
        check.check(40, 30, 3, 3);
        check.check(30, 20, 4, 4);
        assert_eq!((check.checks, check.mismatches), (4, 1));
        assert_eq!(
            check.first,
            Some(Mismatch {
                time_ns: 2,
                seq: 2,
                torch_bytes: 30,
                our_bytes: 20
            })
        );
        assert_eq!(check.offset_bytes, 10);
    }
}
