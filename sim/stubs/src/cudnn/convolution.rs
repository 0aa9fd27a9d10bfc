//! Convolutions by the interface of cuDNN 7: one algorithm, with a workspace.

use super::describe::{Tensor, tensor};
use super::workspace;
use crate::export::{Out, answers, stubs};

/// `cudnnConvolutionFwdAlgoPerf_t` and the two like it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Performance {
    algorithm: i32,
    status: i32,
    milliseconds: f32,
    memory_bytes: usize,
    deterministic: i32,
    math: i32,
    reserved: [i32; 3],
}

/// What a convolution works in that reads two tensors; `None` where one was not
/// described.
fn workspace_bytes(read: [usize; 2]) -> Option<usize> {
    let tensors: Vec<Tensor> = read.into_iter().map_while(tensor).collect();
    (tensors.len() == read.len()).then(|| workspace::convolution(&tensors))
}

/// Answers the one algorithm, which all three directions number 1.
fn algorithms(read: [usize; 2], wanted: i32, count: Out<i32>, results: Out<Performance>) -> i32 {
    let Some(memory_bytes) = workspace_bytes(read) else {
        return super::describe::BAD_PARAMETER;
    };
    if wanted > 0 {
        results.set(Performance {
            algorithm: 1,
            status: 0,
            milliseconds: 1.0,
            memory_bytes,
            deterministic: 1,
            math: 0,
            reserved: [0; 3],
        });
    }
    count.set(i32::from(wanted > 0));
    0
}

/// The functions of each direction, whose parameters are the same: three
/// tensors, of which the third, behind the convolution, is written.
macro_rules! directions {
    ($($get:ident $find:ident $size:ident)*) => {
        answers! {
            versions ["libcudnn.so.9", "libcudnn.so.8"];
            $(
                /// The algorithms by experience.
                fn $get(
                    _handle: usize, a: usize, b: usize, _convolution: usize, _c: usize,
                    wanted: i32, count: Out<i32>, results: Out<Performance>,
                ) -> i32 {
                    algorithms([a, b], wanted, count, results)
                }

                /// The algorithms by trial.
                fn $find(
                    _handle: usize, a: usize, _a_data: usize, b: usize, _b_data: usize,
                    _convolution: usize, _c: usize, _c_data: usize, wanted: i32, count: Out<i32>,
                    results: Out<Performance>, _workspace: usize, _workspace_bytes: usize,
                ) -> i32 {
                    algorithms([a, b], wanted, count, results)
                }

                /// Bytes that an algorithm works in.
                fn $size(
                    _handle: usize, a: usize, b: usize, _convolution: usize, _c: usize,
                    _algorithm: i32, out: Out<usize>,
                ) -> i32 {
                    workspace::answer(out, workspace_bytes([a, b]))
                }
            )*
        }
    };
}

directions! {
    cudnnGetConvolutionForwardAlgorithm_v7
    cudnnFindConvolutionForwardAlgorithmEx
    cudnnGetConvolutionForwardWorkspaceSize

    cudnnGetConvolutionBackwardDataAlgorithm_v7
    cudnnFindConvolutionBackwardDataAlgorithmEx
    cudnnGetConvolutionBackwardDataWorkspaceSize

    cudnnGetConvolutionBackwardFilterAlgorithm_v7
    cudnnFindConvolutionBackwardFilterAlgorithmEx
    cudnnGetConvolutionBackwardFilterWorkspaceSize
}

stubs! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    computes {
        cudnnConvolutionBackwardData
        cudnnConvolutionBackwardFilter
        cudnnConvolutionBiasActivationForward
        cudnnConvolutionForward
        cudnnSetConvolutionGroupCount
        cudnnSetConvolutionMathType
        cudnnSetConvolutionNdDescriptor
    }
    refuses 3000 {}
}
