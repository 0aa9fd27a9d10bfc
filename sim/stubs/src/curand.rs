//! cuRAND: PyTorch loads it and calls nothing of it but this, which is for
//! people who ask.

use crate::export::{Out, answers};

answers! {
    versions [];
    /// The version.
    fn curandGetVersion(out: Out<i32>) -> i32 {
        out.set(10_400);
        0
    }
}
