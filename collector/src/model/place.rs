//! Places: where memory is made, as far as a person can tell two of them apart.
//!
//! A place is a layer, a device and the signature of a stack. The signature is the stack's Python frames where it has any,
//! so that a code object made twice or another path through C++ is still the same place; otherwise it is all native frames.

use std::collections::HashMap;

use gpumem_wire::define::StackDefinition;
use gpumem_wire::{DeviceOrdinal, Frame, LiveObject, Object, StackId};

use crate::model::definitions::Definitions;

/// Whose memory it is, from the driver's or a framework's point of view. Each byte belongs to the innermost layer that knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// A block of PyTorch's caching allocator.
    TorchBlock,
    /// `cuMemAlloc` and kin.
    Device,
    /// Stream-ordered memory of a pool.
    Pool,
    /// Physical memory of `cuMemCreate`.
    Physical,
    /// Managed memory.
    Managed,
    /// Pinned host memory of `cuMemHostAlloc` and kin.
    PinnedHost,
    /// Host memory of the program's own, pinned by `cuMemHostRegister`.
    RegisteredHost,
}

impl Layer {
    /// All layers, in the order of [`Layer::index`].
    pub const ALL: [Self; 7] = [
        Self::TorchBlock,
        Self::Device,
        Self::Pool,
        Self::Physical,
        Self::Managed,
        Self::PinnedHost,
        Self::RegisteredHost,
    ];

    /// The layer of an object; `None` for what holds no bytes of memory (contexts, pools, reservations, mappings).
    pub const fn of(object: Object) -> Option<Self> {
        match object {
            Object::Block => Some(Self::TorchBlock),
            Object::DeviceAllocation => Some(Self::Device),
            Object::PoolBlock => Some(Self::Pool),
            Object::Physical => Some(Self::Physical),
            Object::ManagedAllocation => Some(Self::Managed),
            Object::PinnedHost => Some(Self::PinnedHost),
            Object::RegisteredHost => Some(Self::RegisteredHost),
            Object::Context | Object::Pool | Object::Reservation | Object::Mapping => None,
        }
    }

    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TorchBlock => "torch-block",
            Self::Device => "device",
            Self::Pool => "pool",
            Self::Physical => "physical",
            Self::Managed => "managed",
            Self::PinnedHost => "pinned-host",
            Self::RegisteredHost => "registered-host",
        }
    }

    /// Whether a caching allocator takes its segments from this layer. Stream-ordered memory is not cached a second time:
    /// torch's `cudaMallocAsync` backend, RMM's and CuPy's ask the driver for every single tensor.
    pub const fn holds_segments(self) -> bool {
        matches!(self, Self::Device | Self::Physical | Self::Managed)
    }

    /// Its place in [`Layer::ALL`].
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A caching allocator that takes segments from the driver and hands out blocks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Framework {
    /// PyTorch's CUDA caching allocator.
    Torch,
    /// XLA's BFC allocator (JAX, TensorFlow).
    Xla,
    /// CuPy's memory pool.
    CuPy,
    /// RAPIDS Memory Manager.
    Rmm,
}

impl Framework {
    /// The name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Xla => "xla",
            Self::CuPy => "cupy",
            Self::Rmm => "rmm",
        }
    }

    /// The framework whose allocator lives in the module of this path.
    pub fn of_module(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with("libc10_cuda") {
            Some(Self::Torch)
        } else if name.starts_with("xla_cuda_plugin") || name.starts_with("libtensorflow") {
            Some(Self::Xla)
        } else if path.contains("/cupy_backends/") || path.contains("/cupy/cuda/") {
            Some(Self::CuPy)
        } else if name.starts_with("librmm") {
            Some(Self::Rmm)
        } else {
            None
        }
    }

    /// The frameworks that these variables tell to ask the driver for every single tensor.
    pub fn switched_off(environment: &[(String, String)]) -> Vec<Self> {
        let is = |name: &str, wanted: &dyn Fn(&str) -> bool| {
            environment
                .iter()
                .any(|(key, value)| key == name && wanted(value))
        };
        let mut off = Vec::new();
        // PyTorch looks only at whether it is set (c10/cuda/CUDACachingAllocator.cpp, forceUncachedAllocator).
        if is("PYTORCH_NO_CUDA_MEMORY_CACHING", &|_| true) {
            off.push(Self::Torch);
        }
        if is("XLA_PYTHON_CLIENT_ALLOCATOR", &|value| value == "platform") {
            off.push(Self::Xla);
        }
        off
    }

    /// Whether its blocks are seen one by one, so that its segments hold nothing that is not accounted for.
    pub const fn blocks_are_seen(self) -> bool {
        matches!(self, Self::Torch)
    }
}

/// A place's number in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlaceId(pub u32);

/// Where memory is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The layer.
    pub layer: Layer,
    /// The device.
    pub device: DeviceOrdinal,
    /// One stack with this place's signature: the first that was seen.
    pub stack: StackId,
    /// The caching allocator whose segments these are: its cache is not the program's own allocation.
    pub segment_of: Option<Framework>,
}

/// A signature's number. Stacks that differ only in what a person does not see share one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct SignatureId(u32);

/// A frame as it counts for a signature: a function (by file and name) or a native address, and the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SignatureFrame {
    Function { function: u32, line: u32 },
    Native(Frame),
}

/// What a stack says about places, found once per stack.
#[derive(Clone, Copy, Default)]
struct StackFacts {
    signature: SignatureId,
    framework: Option<Framework>,
}

/// What makes two places the same.
type Key = (Layer, DeviceOrdinal, SignatureId, Option<Framework>);

fn key(layer: Layer, device: DeviceOrdinal, facts: StackFacts, adopted: Option<Framework>) -> Key {
    let by_stack = facts.framework.filter(|_| layer.holds_segments());
    (layer, device, facts.signature, adopted.or(by_stack))
}

/// All places of a process.
#[derive(Default)]
pub struct Places {
    places: Vec<Place>,
    by_key: HashMap<Key, PlaceId>,
    stacks: HashMap<StackId, StackFacts>,
    signatures: HashMap<Box<[SignatureFrame]>, SignatureId>,
    functions: HashMap<(String, String), u32>,
    switched_off: Vec<Framework>,
}

impl Places {
    /// The place with this number.
    pub fn get(&self, id: PlaceId) -> Option<&Place> {
        self.places.get(id.0 as usize)
    }

    /// All places with their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (PlaceId, &Place)> {
        (0..).map(PlaceId).zip(&self.places)
    }

    /// How many places there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nothing was made anywhere.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// From now on this framework's calls are the program's own allocations, not segments.
    pub(crate) fn switch_off(&mut self, framework: Framework) {
        self.switched_off.push(framework);
    }

    /// The framework whose allocator takes memory of this layer from the driver by this stack.
    pub(crate) fn framework(
        &mut self,
        definitions: &Definitions,
        layer: Layer,
        stack: StackId,
    ) -> Option<Framework> {
        self.facts(definitions, stack)
            .framework
            .filter(|_| layer.holds_segments())
    }

    /// The place of an object that was given one before.
    pub(crate) fn known(&self, object: &LiveObject, adopted: Option<Framework>) -> Option<PlaceId> {
        let layer = Layer::of(object.object)?;
        let facts = self.stacks.get(&object.stack).copied().unwrap_or_default();
        self.by_key
            .get(&key(layer, object.device, facts, adopted))
            .copied()
    }

    /// The place of an object; `None` for what holds no memory. `adopted`: a framework that handed out blocks of this memory
    /// although its stack does not pass through its allocator.
    pub fn of(
        &mut self,
        definitions: &Definitions,
        object: &LiveObject,
        adopted: Option<Framework>,
    ) -> Option<PlaceId> {
        let layer = Layer::of(object.object)?;
        let facts = self.facts(definitions, object.stack);
        let key = key(layer, object.device, facts, adopted);
        if let Some(&place) = self.by_key.get(&key) {
            return Some(place);
        }
        let id = PlaceId(u32::try_from(self.places.len()).ok()?);
        self.places.push(Place {
            layer,
            device: object.device,
            stack: object.stack,
            segment_of: key.3,
        });
        self.by_key.insert(key, id);
        Some(id)
    }

    fn facts(&mut self, definitions: &Definitions, stack: StackId) -> StackFacts {
        if let Some(&facts) = self.stacks.get(&stack) {
            return facts;
        }
        let definition = definitions.stack(stack);
        let frames = self.signature_frames(definitions, definition);
        // 0 is the signature of no frames at all.
        let signature = if frames.is_empty() {
            SignatureId::default()
        } else {
            let next = SignatureId(self.signatures.len() as u32 + 1);
            *self.signatures.entry(frames).or_insert(next)
        };
        let framework = definition
            .and_then(|stack| definitions.calling_module(stack))
            .and_then(|module| Framework::of_module(&module.path))
            .filter(|framework| !self.switched_off.contains(framework));
        let facts = StackFacts {
            signature,
            framework,
        };
        // Kept even where the definition is missing: an object must leave the place that it came to.
        self.stacks.insert(stack, facts);
        facts
    }

    fn signature_frames(
        &mut self,
        definitions: &Definitions,
        stack: Option<&StackDefinition>,
    ) -> Box<[SignatureFrame]> {
        let Some(stack) = stack else {
            return Box::default();
        };
        let python: Box<[SignatureFrame]> = stack
            .frames
            .iter()
            .filter_map(|frame| match *frame {
                Frame::Python { code, line } => {
                    let code = definitions.code(code)?;
                    let next = self.functions.len() as u32;
                    let key = (code.file.clone(), code.function.clone());
                    let function = *self.functions.entry(key).or_insert(next);
                    Some(SignatureFrame::Function { function, line })
                }
                _ => None,
            })
            .collect();
        if python.is_empty() {
            stack
                .frames
                .iter()
                .copied()
                .map(SignatureFrame::Native)
                .collect()
        } else {
            python
        }
    }
}
