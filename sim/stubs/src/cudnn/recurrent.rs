//! Recurrent networks: the parameters and where each lies, and what a pass works
//! in and keeps.
//!
//! Parameters lie as cuDNN lays them (its guide on `cudnnGetRNNWeightParams`):
//! the matrices of all layers, then their biases; of a layer first those of the
//! input, then those of the state, one for each gate. The two sizes of a pass are
//! a model.

use super::describe::{BAD_PARAMETER, Tensor, element_bytes};
use super::workspace::answer;
use crate::export::{In, Out, answers, stubs};
use crate::object;

/// A network, as the program describes it (`cudnnSetRNNDescriptor_v8`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Network {
    /// `cudnnRNNMode_t`: 2 is LSTM, 3 is GRU.
    pub(super) mode: i32,
    /// `cudnnRNNBiasMode_t`: none, of the input, of both, of the state.
    pub(super) bias: i32,
    pub(super) both_directions: bool,
    /// `cudnnDataType_t`.
    pub(super) kind: i32,
    pub(super) input: usize,
    pub(super) hidden: usize,
    /// Elements of a state after its projection; `hidden` where there is none.
    pub(super) projected: usize,
    pub(super) layers: usize,
}

/// A parameter: its bytes into the parameters, its rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) at: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Network {
    fn gates(&self) -> usize {
        match self.mode {
            2 => 4,
            3 => 3,
            _ => 1,
        }
    }

    fn directions(&self) -> usize {
        1 + usize::from(self.both_directions)
    }

    fn is_projected(&self) -> bool {
        self.projected != self.hidden
    }

    /// Columns of a layer's input.
    fn inputs(&self, layer: usize) -> usize {
        if layer == 0 {
            self.input
        } else {
            self.projected * self.directions()
        }
    }

    /// Elements of the matrices of one direction of a layer.
    fn matrices(&self, layer: usize) -> usize {
        let gates = self.gates() * self.hidden * (self.inputs(layer) + self.projected);
        let projection = if self.is_projected() {
            self.projected * self.hidden
        } else {
            0
        };
        gates + projection
    }

    /// Elements of the biases of one direction of a layer.
    fn biases(&self) -> usize {
        let kinds = match self.bias {
            0 => 0,
            1 | 3 => 1,
            _ => 2,
        };
        kinds * self.gates() * self.hidden
    }

    /// Elements of the matrices of all layers before one.
    fn matrices_before(&self, layer: usize) -> usize {
        (0..layer)
            .map(|layer| self.directions() * self.matrices(layer))
            .sum()
    }

    /// Bytes of all parameters.
    pub(super) fn parameter_bytes(&self) -> usize {
        let biases = self.layers * self.directions() * self.biases();
        (self.matrices_before(self.layers) + biases) * element_bytes(self.kind)
    }

    /// The layer and direction of a number that counts both.
    fn layer(&self, number: i32) -> Option<(usize, usize)> {
        let number = usize::try_from(number).ok()?;
        let (layer, direction) = (number / self.directions(), number % self.directions());
        (layer < self.layers).then_some((layer, direction))
    }

    /// A matrix: the gates' of the input, then of the state, then the projection.
    pub(super) fn matrix(&self, number: i32, which: i32) -> Option<Parameter> {
        let (layer, direction) = self.layer(number)?;
        let which = usize::try_from(which).ok()?;
        let (gates, inputs) = (self.gates(), self.inputs(layer));
        let (before, rows, columns) = if which < gates {
            (which * self.hidden * inputs, self.hidden, inputs)
        } else if which < 2 * gates {
            let before = gates * self.hidden * inputs;
            let before = before + (which - gates) * self.hidden * self.projected;
            (before, self.hidden, self.projected)
        } else if which == 2 * gates && self.is_projected() {
            let before = gates * self.hidden * (inputs + self.projected);
            (before, self.projected, self.hidden)
        } else {
            return None;
        };
        let before = before + self.matrices_before(layer) + direction * self.matrices(layer);
        Some(Parameter {
            at: before * element_bytes(self.kind),
            rows,
            columns,
        })
    }

    /// A bias: the gates' of the input, then of the state.
    pub(super) fn bias(&self, number: i32, which: i32) -> Option<Parameter> {
        let (layer, direction) = self.layer(number)?;
        let (which, gates) = (usize::try_from(which).ok()?, self.gates());
        let which = match self.bias {
            1 if which < gates => which,
            2 if which < 2 * gates => which,
            3 if (gates..2 * gates).contains(&which) => which - gates,
            _ => return None,
        };
        let before = self.matrices_before(self.layers)
            + (layer * self.directions() + direction) * self.biases()
            + which * self.hidden;
        Some(Parameter {
            at: before * element_bytes(self.kind),
            rows: self.hidden,
            columns: 1,
        })
    }

    /// Bytes that a pass works in: what all gates of a layer get of its input,
    /// for every step at once, since cuDNN multiplies the input once.
    pub(super) fn workspace_bytes(&self, steps: usize, batch: usize) -> usize {
        let gates = self.gates() * self.hidden * self.directions();
        steps * batch * gates * element_bytes(self.kind)
    }

    /// Bytes that a training pass keeps: of every layer and step the gates, the
    /// state, and what goes to the next layer (an LSTM has a cell, too).
    pub(super) fn reserve_bytes(&self, steps: usize, batch: usize) -> usize {
        let states = if self.mode == 2 { 2 } else { 1 };
        let kept = (self.gates() + states) * self.hidden + self.projected;
        steps * batch * self.layers * self.directions() * kept * element_bytes(self.kind)
    }
}

/// What a program's data is (`cudnnSetRNNDataDescriptor`).
#[derive(Clone, Copy, Default)]
struct Sequences {
    steps: usize,
    batch: usize,
}

/// A size that a program says; a negative one is none.
pub(super) fn size(number: i32) -> usize {
    usize::try_from(number).unwrap_or(0)
}

fn network(descriptor: usize) -> Option<Network> {
    object::read(descriptor, |network: &Network| *network)
}

/// Answers a parameter: what it is, and where. What is not there has no address.
fn parameter(found: Option<Parameter>, kind: i32, base: usize, what: usize, out: Out<usize>) {
    if let Some(parameter) = found {
        let dimension = |size| i64::try_from(size).unwrap_or(i64::MAX);
        let dimensions = vec![1, dimension(parameter.rows), dimension(parameter.columns)];
        object::describe(what, Tensor::dense(kind, dimensions));
    }
    out.set(found.map_or(0, |parameter| base + parameter.at));
}

answers! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    /// Says what a network is.
    fn cudnnSetRNNDescriptor_v8(
        descriptor: usize, _algorithm: i32, mode: i32, bias: i32, direction: i32,
        _input_mode: i32, kind: i32, _precision: i32, _math: i32, input: i32, hidden: i32,
        projected: i32, layers: i32, _dropout: usize, _flags: u32,
    ) -> i32 {
        let network = Network {
            mode,
            bias,
            both_directions: direction == 1,
            kind,
            input: size(input),
            hidden: size(hidden),
            projected: if projected > 0 { size(projected) } else { size(hidden) },
            layers: size(layers),
        };
        if object::describe(descriptor, network) { 0 } else { BAD_PARAMETER }
    }

    /// Says what a network's data is.
    fn cudnnSetRNNDataDescriptor(
        descriptor: usize, _kind: i32, _layout: i32, steps: i32, batch: i32, _vector: i32,
        _lengths: In<i32>, _fill: usize,
    ) -> i32 {
        let sequences = Sequences { steps: size(steps), batch: size(batch) };
        if object::describe(descriptor, sequences) { 0 } else { BAD_PARAMETER }
    }

    /// Bytes of all parameters.
    fn cudnnGetRNNWeightSpaceSize(_handle: usize, descriptor: usize, out: Out<usize>) -> i32 {
        answer(out, network(descriptor).map(|network| network.parameter_bytes()))
    }

    /// What a pass works in, and what a training one keeps.
    fn cudnnGetRNNTempSpaceSizes(
        _handle: usize, descriptor: usize, pass: i32, data: usize, workspace: Out<usize>,
        reserve: Out<usize>,
    ) -> i32 {
        let sequences = object::read(data, |sequences: &Sequences| *sequences);
        let Some((network, data)) = network(descriptor).zip(sequences) else {
            return BAD_PARAMETER;
        };
        workspace.set(network.workspace_bytes(data.steps, data.batch));
        let is_training = pass == 1;
        reserve.set(if is_training { network.reserve_bytes(data.steps, data.batch) } else { 0 });
        0
    }

    /// A matrix and its bias: what they are, and where.
    fn cudnnGetRNNWeightParams(
        _handle: usize, descriptor: usize, layer: i32, _bytes: usize, base: usize, which: i32,
        matrix: usize, matrix_at: Out<usize>, bias: usize, bias_at: Out<usize>,
    ) -> i32 {
        let Some(network) = network(descriptor) else {
            return BAD_PARAMETER;
        };
        parameter(network.matrix(layer, which), network.kind, base, matrix, matrix_at);
        parameter(network.bias(layer, which), network.kind, base, bias, bias_at);
        0
    }
}

stubs! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    computes {
        cudnnRNNBackwardData_v8
        cudnnRNNBackwardWeights_v8
        cudnnRNNForward
    }
    refuses 3000 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two layers of an LSTM in both directions.
    const LSTM: Network = Network {
        mode: 2,
        bias: 2,
        both_directions: true,
        kind: 0,
        input: 10,
        hidden: 20,
        projected: 20,
        layers: 2,
    };

    #[test]
    fn parameters_are_as_many_as_torch_counts() {
        // torch.nn.LSTM(10, 20, 2, bidirectional=True) has 15,040 of them.
        assert_eq!(LSTM.parameter_bytes(), 15_040 * 4);
        let gru = Network {
            mode: 3,
            both_directions: false,
            layers: 1,
            ..LSTM
        };
        // torch.nn.GRU(10, 20): 3 * 20 * (10 + 20 + 2).
        assert_eq!(gru.parameter_bytes(), 3 * 20 * 32 * 4);
        let projected = Network {
            projected: 5,
            both_directions: false,
            layers: 1,
            ..LSTM
        };
        // torch.nn.LSTM(10, 20, proj_size=5): 4 * 20 * (10 + 5 + 2) + 5 * 20.
        assert_eq!(projected.parameter_bytes(), (4 * 20 * 17 + 100) * 4);
    }

    #[test]
    fn parameters_lie_side_by_side() {
        for network in [
            LSTM,
            Network {
                projected: 5,
                ..LSTM
            },
            Network { mode: 3, ..LSTM },
        ] {
            let last = network.gates() as i32 * 2 + i32::from(network.is_projected());
            let mut at = 0;
            let mut next = |parameter: Parameter| {
                assert_eq!(parameter.at, at);
                at += parameter.rows * parameter.columns * 4;
            };
            for layer in 0..4 {
                (0..last).for_each(|which| next(network.matrix(layer, which).unwrap()));
            }
            for layer in 0..4 {
                let gates = network.gates() as i32 * 2;
                (0..gates).for_each(|which| next(network.bias(layer, which).unwrap()));
            }
            assert_eq!(at, network.parameter_bytes());
            assert_eq!(network.matrix(4, 0), None);
            assert_eq!(network.matrix(0, last), None);
            assert_eq!(network.bias(0, 8), None);
        }
    }

    #[test]
    fn only_some_have_biases() {
        let bare = Network { bias: 0, ..LSTM };
        assert_eq!(bare.bias(0, 0), None);
        assert_eq!(
            LSTM.parameter_bytes() - bare.parameter_bytes(),
            2 * 2 * 2 * 4 * 20 * 4
        );
        let of_the_state = Network { bias: 3, ..LSTM };
        assert_eq!(of_the_state.bias(0, 3), None);
        assert!(of_the_state.bias(0, 4).is_some());
    }
}
