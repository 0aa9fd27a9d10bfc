//! A strong 64-bit hash that takes one word at a time.
//!
//! A stack is hashed while it is walked, so the hash must cost less than a load: each word is folded into one of two lanes by
//! a 64 x 64 -> 128 bit multiplication, and since the lanes take turns two multiplications are always in flight.

/// A hash in the making.
#[derive(Clone, Copy)]
pub(crate) struct Fold {
    lane: u64,
    other: u64,
}

impl Fold {
    /// A hash of nothing.
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self {
            lane: 0x9ae1_6a3b_2f90_404f,
            other: 0xc949_d7c7_509e_6557,
        }
    }

    /// Takes one word; the order of words counts.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: u64) {
        let folded = mix(self.lane ^ word);
        self.lane = self.other;
        self.other = folded;
    }

    /// Takes bytes, eight at a time.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0u8; 8];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    /// The hash. Never 0, which tables use for "empty".
    #[inline(always)]
    pub(crate) fn finish(self) -> u64 {
        mix(self.lane ^ self.other.rotate_left(32)) | 1
    }
}

/// Multiplies to 128 bits and folds the halves: every bit of the input reaches every bit of the output.
#[inline(always)]
pub(crate) fn mix(word: u64) -> u64 {
    let product = u128::from(word) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(words: &[u64]) -> u64 {
        let mut fold = Fold::new();
        for word in words {
            fold.word(*word);
        }
        fold.finish()
    }

    #[test]
    fn order_count_and_value_all_count() {
        let base = hash(&[1, 2, 3]);
        assert_ne!(base, hash(&[1, 3, 2]));
        assert_ne!(base, hash(&[1, 2]));
        assert_ne!(base, hash(&[1, 2, 3, 0]));
        assert_ne!(base, hash(&[1, 2, 4]));
        assert_ne!(hash(&[]), 0);
    }

    #[test]
    fn neighbouring_stacks_do_not_collide() {
        let mut seen = std::collections::HashSet::new();
        for a in 0..300u64 {
            for b in 0..300u64 {
                assert!(seen.insert(hash(&[0x7f00_0000_1000 + a, 0x7f00_0000_2000 + 8 * b])));
            }
        }
    }
}
