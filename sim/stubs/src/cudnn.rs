//! cuDNN: convolutions by the graph interface, normalisation, pooling. Recurrent
//! networks and CTC losses are not simulated.

use std::ffi::{c_char, c_void};
use std::sync::LazyLock;

use crate::export::{Out, answers, stubs};
use crate::object;

/// Bytes that batch normalisations ask for.
const NORMALISATION_BYTES: usize = 4096;

/// `cudnnBackendAttributeType_t`.
const INT64: i32 = 3;
const BOOLEAN: i32 = 2;
const DOUBLE: i32 = 5;
const DESCRIPTOR: i32 = 15;
const KNOB: i32 = 16;
const NUMERICAL_NOTE: i32 = 17;
const LAYOUT: i32 = 18;
const BEHAVIOUR_NOTE: i32 = 19;
const TEXT: i32 = 26;

/// Bytes of workspace of each plan.
fn workspace_bytes() -> i64 {
    static BYTES: LazyLock<i64> = LazyLock::new(|| {
        let text = std::env::var("GPUMEM_SIM_CUDNN_WORKSPACE").unwrap_or_default();
        text.parse().unwrap_or(1 << 20)
    });
    *BYTES
}

answers! {
    version "libcudnn.so.9";
    /// Creates an object.
    fn cudnnCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateTensorDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateFilterDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateConvolutionDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateActivationDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateDropoutDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreatePoolingDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateRNNDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateRNNDataDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateCTCLossDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates an object.
    fn cudnnCreateSpatialTransformerDescriptor(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// The version, as `major * 10000 + minor * 100 + patch`.
    fn cudnnGetVersion() -> usize {
        91_900
    }

    /// The runtime that it was made for.
    fn cudnnGetCudartVersion() -> usize {
        13_000
    }

    /// Major, minor and patch of the version.
    fn cudnnGetProperty(kind: i32, out: Out<i32>) -> i32 {
        out.set(match kind {
            0 => 9,
            1 => 19,
            _ => 0,
        });
        0
    }

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
        out.set(1 << 20);
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

    /// Creates a descriptor of the graph interface.
    fn cudnnBackendCreateDescriptor(_kind: i32, out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// An attribute of one: of descriptors there is one, of notes and knobs
    /// none, and a plan's whole number is its workspace.
    fn cudnnBackendGetAttribute(
        _descriptor: usize,
        _name: i32,
        kind: i32,
        wanted: i64,
        count: Out<i64>,
        out: Out<c_void>,
    ) -> i32 {
        match kind {
            DESCRIPTOR => count.set(1),
            KNOB | NUMERICAL_NOTE | BEHAVIOUR_NOTE | LAYOUT => count.set(0),
            TEXT => {
                count.set(if wanted > 0 { 1 } else { 3 });
                for (index, byte) in (0..wanted.clamp(0, 3)).zip(*b"{}\0") {
                    out.cast::<u8>().set_at(index as usize, byte);
                }
            }
            _ => {
                count.set(1);
                match kind {
                    _ if wanted <= 0 => {}
                    INT64 => out.cast::<i64>().set(workspace_bytes()),
                    DOUBLE => out.cast::<i64>().set(0),
                    BOOLEAN => out.cast::<u8>().set(0),
                    _ => out.cast::<i32>().set(0),
                }
            }
        }
        0
    }
}

stubs! {
    version "libcudnn.so.9";
    computes {
        cudnnBackendDestroyDescriptor
        cudnnBackendExecute
        cudnnBackendFinalize
        cudnnBackendSetAttribute
        cudnnBatchNormalizationBackwardEx
        cudnnBatchNormalizationForwardInference
        cudnnBatchNormalizationForwardTrainingEx
        cudnnConvolutionBackwardData
        cudnnConvolutionBackwardFilter
        cudnnConvolutionBiasActivationForward
        cudnnConvolutionForward
        cudnnDestroyActivationDescriptor
        cudnnDestroyCTCLossDescriptor
        cudnnDestroyConvolutionDescriptor
        cudnnDestroyDropoutDescriptor
        cudnnDestroyFilterDescriptor
        cudnnDestroyRNNDataDescriptor
        cudnnDestroyRNNDescriptor
        cudnnDestroySpatialTransformerDescriptor
        cudnnDestroyTensorDescriptor
        cudnnPoolingForward
        cudnnRestoreDropoutDescriptor
        cudnnSetActivationDescriptor
        cudnnSetCTCLossDescriptorEx
        cudnnSetCTCLossDescriptor_v9
        cudnnSetConvolutionGroupCount
        cudnnSetConvolutionMathType
        cudnnSetConvolutionNdDescriptor
        cudnnSetDropoutDescriptor
        cudnnSetFilterNdDescriptor
        cudnnSetPooling2dDescriptor
        cudnnSetRNNDataDescriptor
        cudnnSetRNNDescriptor_v8
        cudnnSetSpatialTransformerNdDescriptor
        cudnnSetStream
        cudnnSetTensorNdDescriptor
        cudnnSpatialTfGridGeneratorBackward
        cudnnSpatialTfGridGeneratorForward
        cudnnSpatialTfSamplerBackward
        cudnnSpatialTfSamplerForward
    }
    refuses 3000 {
        cudnnCTCLoss
        cudnnCTCLoss_v8
        cudnnFindConvolutionBackwardDataAlgorithmEx
        cudnnFindConvolutionBackwardFilterAlgorithmEx
        cudnnFindConvolutionForwardAlgorithmEx
        cudnnGetCTCLossWorkspaceSize
        cudnnGetCTCLossWorkspaceSize_v8
        cudnnGetConvolutionBackwardDataAlgorithm_v7
        cudnnGetConvolutionBackwardDataWorkspaceSize
        cudnnGetConvolutionBackwardFilterAlgorithm_v7
        cudnnGetConvolutionBackwardFilterWorkspaceSize
        cudnnGetConvolutionForwardAlgorithm_v7
        cudnnGetConvolutionForwardWorkspaceSize
        cudnnGetFilterNdDescriptor
        cudnnGetRNNTempSpaceSizes
        cudnnGetRNNWeightParams
        cudnnGetRNNWeightSpaceSize
        cudnnGetTensorNdDescriptor
        cudnnRNNBackwardData_v8
        cudnnRNNBackwardWeights_v8
        cudnnRNNForward
    }
}
