//! cuDNN 8 and 9: convolutions by the graph interface and by the older one,
//! recurrent networks, normalisation, pooling. Everything succeeds and computes
//! nothing; sizes of workspaces are a model (`workspace.rs`).
//!
//! `describe.rs` keeps what the program says of tensors, since sizes follow from
//! it; `graph.rs` and `convolution.rs` are the two interfaces of convolutions;
//! `recurrent.rs` is recurrent networks, `recurrent_6.rs` their interface before
//! cuDNN 9.

mod convolution;
mod describe;
mod graph;
mod recurrent;
mod recurrent_6;
mod workspace;

use std::ffi::c_char;
use std::sync::LazyLock;

use crate::export::{Out, answers, stubs};
use crate::object;

/// Bytes that batch normalisations work in and keep: real ones are a few
/// kilobytes for each channel's sums.
const NORMALISATION_BYTES: usize = 4096;
/// Bytes of the state of a dropout: generators of the device's threads.
const DROPOUT_STATE_BYTES: usize = 1 << 20;
/// The version that programs of cuDNN 8 find, `major * 1000 + minor * 100 + patch`.
const VERSION_8: usize = 8_907;

/// The version of cuDNN 9, `major * 10000 + minor * 100 + patch`. PyTorch wants
/// one that is not older than that which it was compiled with.
fn version() -> usize {
    static VERSION: LazyLock<usize> = LazyLock::new(|| {
        let text = std::env::var("GPUMEM_SIM_CUDNN_VERSION").unwrap_or_default();
        text.parse().unwrap_or(92_600)
    });
    *VERSION
}

/// Creates and destroys objects of one kind each.
macro_rules! objects {
    ($($create:ident $destroy:ident)*) => {
        answers! {
            versions ["libcudnn.so.9", "libcudnn.so.8"];
            $(
                /// Creates an object.
                fn $create(out: Out<usize>) -> i32 {
                    object::create(out)
                }

                /// Destroys it.
                fn $destroy(object: usize) -> i32 {
                    object::end(object)
                }
            )*
        }
    };
}

objects! {
    cudnnCreate cudnnDestroy
    cudnnCreateActivationDescriptor cudnnDestroyActivationDescriptor
    cudnnCreateCTCLossDescriptor cudnnDestroyCTCLossDescriptor
    cudnnCreateConvolutionDescriptor cudnnDestroyConvolutionDescriptor
    cudnnCreateDropoutDescriptor cudnnDestroyDropoutDescriptor
    cudnnCreateFilterDescriptor cudnnDestroyFilterDescriptor
    cudnnCreatePoolingDescriptor cudnnDestroyPoolingDescriptor
    cudnnCreateRNNDataDescriptor cudnnDestroyRNNDataDescriptor
    cudnnCreateRNNDescriptor cudnnDestroyRNNDescriptor
    cudnnCreateSpatialTransformerDescriptor cudnnDestroySpatialTransformerDescriptor
    cudnnCreateTensorDescriptor cudnnDestroyTensorDescriptor
}

answers! {
    versions [first "libcudnn.so.9"];
    /// The version.
    fn cudnnGetVersion_9 as cudnnGetVersion() -> usize {
        version()
    }

    /// Major, minor and patch of the version.
    fn cudnnGetProperty_9 as cudnnGetProperty(kind: i32, out: Out<i32>) -> i32 {
        let part = match kind {
            0 => version() / 10_000,
            1 => version() / 100 % 100,
            _ => version() % 100,
        };
        out.set(i32::try_from(part).unwrap_or(0));
        0
    }

    /// The runtime that it was made for.
    fn cudnnGetCudartVersion_9 as cudnnGetCudartVersion() -> usize {
        13_000
    }
}

answers! {
    versions [other "libcudnn.so.8"];
    /// The version that programs of cuDNN 8 find.
    fn cudnnGetVersion_8 as cudnnGetVersion() -> usize {
        VERSION_8
    }

    /// Major, minor and patch of it.
    fn cudnnGetProperty_8 as cudnnGetProperty(kind: i32, out: Out<i32>) -> i32 {
        let part = match kind {
            0 => VERSION_8 / 1000,
            1 => VERSION_8 / 100 % 10,
            _ => VERSION_8 % 100,
        };
        out.set(i32::try_from(part).unwrap_or(0));
        0
    }

    /// The runtime that it was made for.
    fn cudnnGetCudartVersion_8 as cudnnGetCudartVersion() -> usize {
        12_010
    }
}

answers! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    /// What an error is called; it lives for ever.
    fn cudnnGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated cuDNN" };
        text.as_ptr()
    }

    /// What the last error was: an empty text.
    fn cudnnGetLastErrorString(out: Out<u8>, length: usize) -> () {
        if length > 0 {
            out.set(0);
        }
    }

    /// The stream of a handle: the legacy one.
    fn cudnnGetStream(_handle: usize, out: Out<usize>) -> i32 {
        out.set(0);
        0
    }

    /// Bytes of the state of a dropout.
    fn cudnnDropoutGetStatesSize(_handle: usize, out: Out<usize>) -> i32 {
        out.set(DROPOUT_STATE_BYTES);
        0
    }

    /// Bytes that a batch normalisation works in.
    fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        _handle: usize,
        _mode: i32,
        _operations: i32,
        _x: usize,
        _z: usize,
        _y: usize,
        _scale: usize,
        _activation: usize,
        out: Out<usize>,
    ) -> i32 {
        out.set(NORMALISATION_BYTES);
        0
    }

    /// Bytes that its backward pass works in.
    fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        _handle: usize,
        _mode: i32,
        _operations: i32,
        _x: usize,
        _y: usize,
        _dy: usize,
        _dz: usize,
        _dx: usize,
        _scale: usize,
        _activation: usize,
        out: Out<usize>,
    ) -> i32 {
        out.set(NORMALISATION_BYTES);
        0
    }

    /// Bytes that it keeps for its backward pass.
    fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        _handle: usize,
        _mode: i32,
        _operations: i32,
        _activation: usize,
        _x: usize,
        out: Out<usize>,
    ) -> i32 {
        out.set(NORMALISATION_BYTES);
        0
    }

    /// Bytes that a CTC loss works in, by the older interface.
    fn cudnnGetCTCLossWorkspaceSize(
        _handle: usize,
        probabilities: usize,
        _gradients: usize,
        _labels: usize,
        _label_lengths: usize,
        _input_lengths: usize,
        _algorithm: i32,
        _loss: usize,
        out: Out<usize>,
    ) -> i32 {
        workspace::answer(out, workspace::ctc(probabilities))
    }

    /// Bytes that a CTC loss works in.
    fn cudnnGetCTCLossWorkspaceSize_v8(
        _handle: usize,
        _algorithm: i32,
        _loss: usize,
        probabilities: usize,
        _gradients: usize,
        out: Out<usize>,
    ) -> i32 {
        workspace::answer(out, workspace::ctc(probabilities))
    }
}

stubs! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    computes {
        cudnnBatchNormalizationBackwardEx
        cudnnBatchNormalizationForwardInference
        cudnnBatchNormalizationForwardTrainingEx
        cudnnCTCLoss
        cudnnCTCLoss_v8
        cudnnPoolingForward
        cudnnRestoreDropoutDescriptor
        cudnnSetActivationDescriptor
        cudnnSetCTCLossDescriptorEx
        cudnnSetCTCLossDescriptor_v9
        cudnnSetDropoutDescriptor
        cudnnSetPooling2dDescriptor
        cudnnSetSpatialTransformerNdDescriptor
        cudnnSetStream
        cudnnSpatialTfGridGeneratorBackward
        cudnnSpatialTfGridGeneratorForward
        cudnnSpatialTfSamplerBackward
        cudnnSpatialTfSamplerForward
    }
    refuses 3000 {}
}
