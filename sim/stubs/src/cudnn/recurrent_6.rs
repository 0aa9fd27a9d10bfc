//! Recurrent networks as programs of cuDNN 8 may ask for them: by the interface
//! of cuDNN 6 and 7, which 9 dropped. A network's input is told only with a
//! question, by the tensor of one step: batch, then features.

use super::describe::{BAD_PARAMETER, Tensor, tensor};
use super::recurrent::{Network, Parameter, size};
use super::workspace::answer;
use crate::export::{In, Out, answers, stubs};
use crate::object;

/// The network of a descriptor, with the input that a step's tensor says.
fn network(descriptor: usize, step: usize) -> Option<(Network, Tensor)> {
    let step = tensor(step)?;
    let network = object::read(descriptor, |network: &Network| *network)?;
    let network = Network {
        kind: step.kind,
        input: step.size(1),
        ..network
    };
    Some((network, step))
}

/// Answers a parameter of a network: a filter, and where it lies.
fn parameter(found: Option<(Parameter, i32)>, base: usize, filter: usize, out: Out<usize>) -> i32 {
    let Some((parameter, kind)) = found else {
        return BAD_PARAMETER;
    };
    let dimension = |size| i64::try_from(size).unwrap_or(i64::MAX);
    let dimensions = vec![1, dimension(parameter.rows), dimension(parameter.columns)];
    object::describe(filter, Tensor::dense(kind, dimensions));
    out.set(base + parameter.at);
    0
}

answers! {
    versions ["libcudnn.so.8"];
    /// Says what a network is; it has both biases.
    fn cudnnSetRNNDescriptor_v6(
        _handle: usize, descriptor: usize, hidden: i32, layers: i32, _dropout: usize,
        _input_mode: i32, direction: i32, mode: i32, _algorithm: i32, _precision: i32,
    ) -> i32 {
        let network = Network {
            mode,
            bias: 2,
            both_directions: direction == 1,
            kind: 0,
            input: 0,
            hidden: size(hidden),
            projected: size(hidden),
            layers: size(layers),
        };
        if object::describe(descriptor, network) { 0 } else { BAD_PARAMETER }
    }

    /// Says that a network's states are projected.
    fn cudnnSetRNNProjectionLayers(
        _handle: usize, descriptor: usize, projected: i32, _output: i32
    ) -> i32 {
        let known = object::update(descriptor, |network: &mut Network| {
            if projected > 0 {
                network.projected = size(projected);
            }
        });
        if known { 0 } else { BAD_PARAMETER }
    }

    /// Bytes of all parameters.
    fn cudnnGetRNNParamsSize(
        _handle: usize, descriptor: usize, step: usize, out: Out<usize>, kind: i32
    ) -> i32 {
        let bytes = network(descriptor, step)
            .map(|(network, _)| Network { kind, ..network }.parameter_bytes());
        answer(out, bytes)
    }

    /// What a pass works in; a tensor for each step.
    fn cudnnGetRNNWorkspaceSize(
        _handle: usize, descriptor: usize, steps: i32, tensors: In<usize>, out: Out<usize>
    ) -> i32 {
        let bytes = tensors.at(0).and_then(|step| network(descriptor, step));
        let bytes = bytes.map(|(network, step)| network.workspace_bytes(size(steps), step.size(0)));
        answer(out, bytes)
    }

    /// What a training pass keeps.
    fn cudnnGetRNNTrainingReserveSize(
        _handle: usize, descriptor: usize, steps: i32, tensors: In<usize>, out: Out<usize>
    ) -> i32 {
        let bytes = tensors.at(0).and_then(|step| network(descriptor, step));
        let bytes = bytes.map(|(network, step)| network.reserve_bytes(size(steps), step.size(0)));
        answer(out, bytes)
    }

    /// A matrix.
    fn cudnnGetRNNLinLayerMatrixParams(
        _handle: usize, descriptor: usize, layer: i32, step: usize, _all: usize, base: usize,
        which: i32, filter: usize, out: Out<usize>,
    ) -> i32 {
        let found = network(descriptor, step)
            .and_then(|(network, _)| Some((network.matrix(layer, which)?, network.kind)));
        parameter(found, base, filter, out)
    }

    /// A bias.
    fn cudnnGetRNNLinLayerBiasParams(
        _handle: usize, descriptor: usize, layer: i32, step: usize, _all: usize, base: usize,
        which: i32, filter: usize, out: Out<usize>,
    ) -> i32 {
        let found = network(descriptor, step)
            .and_then(|(network, _)| Some((network.bias(layer, which)?, network.kind)));
        parameter(found, base, filter, out)
    }
}

stubs! {
    versions ["libcudnn.so.8"];
    computes {
        cudnnRNNBackwardData
        cudnnRNNBackwardWeights
        cudnnRNNForwardInference
        cudnnRNNForwardTraining
        cudnnSetRNNMatrixMathType
    }
    refuses 3000 {}
}
