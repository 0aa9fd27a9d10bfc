//! The graph interface: operations on tensors, engines for them, plans.
//!
//! A descriptor is what the program set. What a plan works in is worked out
//! upwards, when each descriptor is final: a convolution's from its tensors,
//! that of anything else from what it holds.

use std::collections::HashMap;
use std::ffi::c_void;

use super::describe::{BAD_PARAMETER, Tensor};
use super::workspace;
use crate::export::{In, Out, answers, stubs};
use crate::object;

/// `cudnnBackendAttributeType_t`.
const DATA_TYPE: i32 = 1;
const BOOLEAN: i32 = 2;
const INT64: i32 = 3;
const DOUBLE: i32 = 5;
const DESCRIPTOR: i32 = 15;
const KNOB: i32 = 16;
const NUMERICAL_NOTE: i32 = 17;
const LAYOUT: i32 = 18;
const BEHAVIOUR_NOTE: i32 = 19;
const TEXT: i32 = 26;

/// `cudnnBackendAttributeName_t`: of a tensor.
const TENSOR_DATA_TYPE: i32 = 901;
const TENSOR_DIMENSIONS: i32 = 902;
const TENSOR_STRIDES: i32 = 903;
/// Of a plan.
const PLAN_WORKSPACE: i32 = 402;
/// Of the three convolutions, forward and backward to the input and the filter:
/// the two tensors that are read, and the one that is written.
const CONVOLUTIONS: [[i32; 3]; 3] = [[703, 704, 705], [709, 711, 710], [716, 717, 715]];

/// Most numbers that an attribute has which is kept.
const MAX_COUNT: i64 = 4096;

/// A descriptor as far as sizes follow from it.
#[derive(Clone, Default)]
struct Descriptor {
    numbers: HashMap<i32, Vec<i64>>,
    parts: HashMap<i32, Vec<usize>>,
    /// Once it is final.
    workspace_bytes: Option<usize>,
}

impl Descriptor {
    /// The tensor that it is, if it is one.
    fn tensor(&self) -> Option<Tensor> {
        let numbers = |name| self.numbers.get(&name);
        Some(Tensor {
            kind: i32::try_from(*numbers(TENSOR_DATA_TYPE)?.first()?).ok()?,
            dimensions: numbers(TENSOR_DIMENSIONS)?.clone(),
            strides: numbers(TENSOR_STRIDES)?.clone(),
        })
    }

    /// What the convolution reads that it is, if it is one.
    fn convolution(&self) -> Option<Vec<Tensor>> {
        let names = CONVOLUTIONS
            .iter()
            .find(|names| names.iter().all(|name| self.parts.contains_key(name)))?;
        let part = |name| self.parts.get(name).and_then(|parts| parts.first());
        Some(
            names
                .iter()
                .take(2)
                .filter_map(part)
                .filter_map(|part| object::read(*part, Self::tensor).flatten())
                .collect(),
        )
    }

    /// The most that any part works in; `None` where none works in anything.
    fn of_parts(&self) -> Option<usize> {
        let parts = self.parts.values().flatten();
        parts.filter_map(|part| workspace_bytes(*part)).max()
    }
}

fn read(descriptor: usize) -> Option<Descriptor> {
    object::read(descriptor, Descriptor::clone)
}

fn workspace_bytes(descriptor: usize) -> Option<usize> {
    object::read(descriptor, |known: &Descriptor| known.workspace_bytes).flatten()
}

/// Makes a descriptor final.
fn finalize(descriptor: usize) -> i32 {
    // The parts are read without the table of objects being held.
    let Some(known) = read(descriptor) else {
        return BAD_PARAMETER;
    };
    let bytes = match known.convolution() {
        Some(tensors) => Some(workspace::convolution(&tensors)),
        None => known.of_parts(),
    };
    object::update(descriptor, |known: &mut Descriptor| {
        known.workspace_bytes = bytes;
    });
    0
}

/// Keeps an attribute.
fn set(descriptor: usize, name: i32, kind: i32, count: i64, from: In<c_void>) -> i32 {
    let Some(count) = (0..=MAX_COUNT)
        .contains(&count)
        .then(|| usize::try_from(count).unwrap_or(0))
    else {
        return BAD_PARAMETER;
    };
    let known = object::update(descriptor, |known: &mut Descriptor| match kind {
        DATA_TYPE => {
            let numbers = from.cast::<i32>().all(count);
            let numbers = numbers.into_iter().map(i64::from).collect();
            known.numbers.insert(name, numbers);
        }
        INT64 => {
            known.numbers.insert(name, from.cast().all(count));
        }
        DESCRIPTOR => {
            known.parts.insert(name, from.cast().all(count));
        }
        _ => {}
    });
    if known { 0 } else { BAD_PARAMETER }
}

/// The descriptors that an attribute holds: one, which the program has created
/// and which takes over what this one works in.
fn get_part(descriptor: usize, wanted: i64, count: Out<i64>, out: Out<usize>) {
    let part = out.input().at(0).filter(|_| wanted > 0);
    if let Some(part) = part {
        let bytes = workspace_bytes(descriptor)
            .or_else(|| read(descriptor).and_then(|known| known.of_parts()));
        object::update(part, |known: &mut Descriptor| known.workspace_bytes = bytes);
    }
    count.set(1);
}

answers! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    /// Creates a descriptor.
    fn cudnnBackendCreateDescriptor(_kind: i32, out: Out<usize>) -> i32 {
        out.set(object::create_with(Descriptor::default()));
        0
    }

    /// Destroys it.
    fn cudnnBackendDestroyDescriptor(descriptor: usize) -> i32 {
        object::end(descriptor)
    }

    /// Says something of a descriptor.
    fn cudnnBackendSetAttribute(
        descriptor: usize, name: i32, kind: i32, count: i64, from: In<c_void>
    ) -> i32 {
        set(descriptor, name, kind, count, from)
    }

    /// All of it was said.
    fn cudnnBackendFinalize(descriptor: usize) -> i32 {
        finalize(descriptor)
    }

    /// An attribute of one: of descriptors there is one, of notes and knobs
    /// none; a plan's workspace is the model's, and all other numbers are zero.
    fn cudnnBackendGetAttribute(
        descriptor: usize,
        name: i32,
        kind: i32,
        wanted: i64,
        count: Out<i64>,
        out: Out<c_void>,
    ) -> i32 {
        match kind {
            DESCRIPTOR => get_part(descriptor, wanted, count, out.cast()),
            KNOB | NUMERICAL_NOTE | BEHAVIOUR_NOTE | LAYOUT => count.set(0),
            TEXT => {
                count.set(if wanted > 0 { 1 } else { 3 });
                for (index, byte) in (0..wanted.clamp(0, 3)).zip(*b"{}\0") {
                    out.cast::<u8>().set_at(usize::try_from(index).unwrap_or(0), byte);
                }
            }
            _ => {
                count.set(1);
                match kind {
                    _ if wanted <= 0 => {}
                    INT64 if name == PLAN_WORKSPACE => {
                        let bytes = workspace_bytes(descriptor).unwrap_or_else(workspace::other);
                        out.cast::<i64>().set(i64::try_from(bytes).unwrap_or(i64::MAX));
                    }
                    INT64 | DOUBLE => out.cast::<i64>().set(0),
                    BOOLEAN => out.cast::<u8>().set(0),
                    _ => out.cast::<i32>().set(0),
                }
            }
        }
        0
    }
}

stubs! {
    versions ["libcudnn.so.9", "libcudnn.so.8"];
    computes {
        cudnnBackendExecute
    }
    refuses 3000 {}
}
