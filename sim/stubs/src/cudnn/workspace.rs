//! How much memory cuDNN works in: a model.
//!
//! Which engine cuDNN takes is its own choice, and what that needs is not
//! published. What is known of it: convolutions on tensor cores read tensors
//! whose channels lie side by side (NHWC), and cuDNN turns others (PyTorch's
//! default, NCHW) with kernels of its own before, which profiles show as
//! `nchwToNhwcKernel`; many write NCHW themselves (`..._nhwckrsc_nchw_...`). What
//! is turned lies in the workspace. So the model is: a copy of each of the two
//! tensors that a convolution reads and that does not lie so, rounded up as
//! PyTorch rounds, and nothing where both lie so. `GPUMEM_SIM_CUDNN_WORKSPACE`
//! sets a number instead.

use std::sync::LazyLock;

use super::describe::{BAD_PARAMETER, Tensor, tensor};
use crate::export::Out;

/// Copies begin at multiples of this.
const ALIGNMENT_BYTES: usize = 512;

/// The number that the environment sets for every plan.
fn fixed_bytes() -> Option<usize> {
    static BYTES: LazyLock<Option<usize>> = LazyLock::new(|| {
        std::env::var("GPUMEM_SIM_CUDNN_WORKSPACE")
            .ok()?
            .parse()
            .ok()
    });
    *BYTES
}

/// What a convolution works in that reads these tensors.
pub(super) fn convolution(read: &[Tensor]) -> usize {
    fixed_bytes().unwrap_or_else(|| turned_bytes(read))
}

fn turned_bytes(tensors: &[Tensor]) -> usize {
    tensors
        .iter()
        .filter(|tensor| !tensor.is_channels_last())
        .map(|tensor| tensor.bytes().next_multiple_of(ALIGNMENT_BYTES))
        .fold(0, usize::saturating_add)
}

/// What a graph without a convolution works in: nothing is known of it.
pub(super) fn other() -> usize {
    fixed_bytes().unwrap_or(0)
}

/// What a CTC loss works in: the forward and backward variables of each place,
/// of which there are about two for each letter. `None` where the probabilities
/// were not described.
pub(super) fn ctc(probabilities: usize) -> Option<usize> {
    Some(tensor(probabilities)?.bytes().saturating_mul(4))
}

/// Answers a size, or that it cannot be known.
pub(super) fn answer(out: Out<usize>, bytes: Option<usize>) -> i32 {
    match bytes {
        Some(bytes) => {
            out.set(bytes);
            0
        }
        None => BAD_PARAMETER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_turned_counts() {
        let input = Tensor::dense(0, vec![2, 64, 8, 8]);
        let filter = Tensor::dense(0, vec![128, 64, 3, 3]);
        let tensors = [input.clone(), filter.clone()];
        let all = input.bytes() + filter.bytes();
        assert_eq!(turned_bytes(&tensors), all);
        let channels_last = |tensor: &Tensor| {
            let mut tensor = tensor.clone();
            tensor.strides[1] = 1;
            tensor
        };
        assert_eq!(turned_bytes(&tensors.each_ref().map(channels_last)), 0);
    }
}
