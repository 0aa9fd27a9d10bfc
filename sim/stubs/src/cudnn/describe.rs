//! Tensors and filters, as the program describes them.

use crate::export::{In, Out, answers};
use crate::object;

/// `CUDNN_STATUS_BAD_PARAM` of cuDNN 9; of 8, any other number than zero is as
/// good.
pub(super) const BAD_PARAMETER: i32 = 2000;

/// Most dimensions of a tensor (`CUDNN_DIM_MAX`).
const MAX_DIMENSIONS: i32 = 8;

/// What a tensor or filter is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tensor {
    /// `cudnnDataType_t`.
    pub(super) kind: i32,
    pub(super) dimensions: Vec<i64>,
    /// In elements.
    pub(super) strides: Vec<i64>,
}

impl Tensor {
    /// A tensor whose last dimension is dense, as the simulated library hands
    /// out.
    pub(super) fn dense(kind: i32, dimensions: Vec<i64>) -> Self {
        let mut strides = vec![1; dimensions.len()];
        for index in (1..dimensions.len()).rev() {
            strides[index - 1] = strides[index] * dimensions[index];
        }
        Self {
            kind,
            dimensions,
            strides,
        }
    }

    /// Bytes of all elements.
    pub(super) fn bytes(&self) -> usize {
        self.dimensions
            .iter()
            .map(|size| usize::try_from(*size).unwrap_or(0))
            .fold(element_bytes(self.kind), usize::saturating_mul)
    }

    /// Whether the channels of a place lie side by side.
    pub(super) fn is_channels_last(&self) -> bool {
        let channels = self.dimensions.get(1).copied().unwrap_or(1);
        channels == 1 || self.strides.get(1) == Some(&1)
    }

    /// A dimension; one that is not there is 1.
    pub(super) fn size(&self, index: usize) -> usize {
        let size = self.dimensions.get(index).copied().unwrap_or(1);
        usize::try_from(size).unwrap_or(0)
    }
}

/// Bytes of an element of a `cudnnDataType_t`.
pub(super) fn element_bytes(kind: i32) -> usize {
    match kind {
        1 | 10 => 8,
        2 | 9 => 2,
        3 | 6 | 11..=13 => 1,
        _ => 4,
    }
}

/// What a descriptor is said to be.
pub(super) fn tensor(descriptor: usize) -> Option<Tensor> {
    object::read(descriptor, Tensor::clone)
}

/// A list of as many numbers as the program says, if that many can be.
fn numbers(list: In<i32>, count: i32) -> Option<Vec<i64>> {
    let count = (1..=MAX_DIMENSIONS).contains(&count).then_some(count)?;
    let numbers = list.all(usize::try_from(count).ok()?);
    (!numbers.is_empty()).then(|| numbers.into_iter().map(i64::from).collect())
}

fn describe(descriptor: usize, tensor: Option<Tensor>) -> i32 {
    let described = tensor.is_some_and(|tensor| object::describe(descriptor, tensor));
    if described { 0 } else { BAD_PARAMETER }
}

/// Answers numbers, at most as many as there is room for.
fn list(out: Out<i32>, room: i32, numbers: &[i64]) {
    let room = usize::try_from(room).unwrap_or(0);
    for (index, number) in numbers.iter().take(room).enumerate() {
        out.set_at(index, i32::try_from(*number).unwrap_or(i32::MAX));
    }
}

answers! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    /// Says what a tensor is.
    fn cudnnSetTensorNdDescriptor(
        descriptor: usize, kind: i32, count: i32, dimensions: In<i32>, strides: In<i32>
    ) -> i32 {
        let lists = numbers(dimensions, count).zip(numbers(strides, count));
        let tensor = lists.map(|(dimensions, strides)| Tensor { kind, dimensions, strides });
        describe(descriptor, tensor)
    }

    /// What a tensor is.
    fn cudnnGetTensorNdDescriptor(
        descriptor: usize, room: i32, kind: Out<i32>, count: Out<i32>, dimensions: Out<i32>,
        strides: Out<i32>,
    ) -> i32 {
        let Some(tensor) = tensor(descriptor) else {
            return BAD_PARAMETER;
        };
        kind.set(tensor.kind);
        count.set(i32::try_from(tensor.dimensions.len()).unwrap_or(0));
        list(dimensions, room, &tensor.dimensions);
        list(strides, room, &tensor.strides);
        0
    }

    /// Says what a filter is. Format 1 has the channels of a place side by side.
    fn cudnnSetFilterNdDescriptor(
        descriptor: usize, kind: i32, format: i32, count: i32, dimensions: In<i32>
    ) -> i32 {
        let tensor = numbers(dimensions, count).map(|dimensions| {
            let mut tensor = Tensor::dense(kind, dimensions);
            if format == 1 && let Some(stride) = tensor.strides.get_mut(1) {
                *stride = 1;
            }
            tensor
        });
        describe(descriptor, tensor)
    }

    /// What a filter is.
    fn cudnnGetFilterNdDescriptor(
        descriptor: usize, room: i32, kind: Out<i32>, format: Out<i32>, count: Out<i32>,
        dimensions: Out<i32>,
    ) -> i32 {
        let Some(tensor) = tensor(descriptor) else {
            return BAD_PARAMETER;
        };
        kind.set(tensor.kind);
        format.set(i32::from(tensor.strides.get(1) == Some(&1)));
        count.set(i32::try_from(tensor.dimensions.len()).unwrap_or(0));
        list(dimensions, room, &tensor.dimensions);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_layout() {
        let tensor = Tensor::dense(2, vec![8, 64, 7, 7]);
        assert_eq!(tensor.bytes(), 8 * 64 * 49 * 2);
        assert_eq!(tensor.strides, [64 * 49, 49, 7, 1]);
        assert!(!tensor.is_channels_last());
        let last = Tensor {
            strides: vec![64 * 49, 1, 7 * 64, 64],
            ..tensor
        };
        assert!(last.is_channels_last());
        assert!(Tensor::dense(0, vec![8, 1, 7, 7]).is_channels_last());
        assert_eq!(Tensor::dense(0, vec![8, -1]).bytes(), 0);
    }
}
