//! What memory is to a program: a weight, a gradient, an activation.
//!
//! Told from who made it (the frames) and what became of it (what was alive when backward passes began and ended), in this
//! order: a library's own memory, an optimizer's, what a backward pass made, a module's weights, what a forward pass left for
//! the backward pass. What none of these knows is `other`, which is honest: a tensor of the program's own.

use serde::Serialize;

use crate::model::peak::Share;
use crate::model::{Layer, Process};
use crate::symbols::site::{is_torch_source, whose};
use crate::symbols::{Language, Mine, ResolvedFrame};

/// What memory is to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Weights and buffers of a module.
    Parameter,
    /// What a backward pass made and left.
    Gradient,
    /// What an optimizer keeps from one step to the next.
    OptimizerState,
    /// What a forward pass made and the backward pass needs.
    Activation,
    /// Gone within its pass or step.
    Temporary,
    /// Made by a backward pass that was never seen to end: gradients and temporaries.
    Backward,
    /// Brought to the device by the program itself.
    Input,
    /// A library's scratch memory.
    Workspace,
    /// Buffers of a communication library.
    Communication,
    /// The program's own otherwise.
    Other,
}

impl Category {
    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameter => "weights",
            Self::Gradient => "gradients",
            Self::OptimizerState => "optimizer state",
            Self::Activation => "activations",
            Self::Temporary => "temporaries",
            Self::Backward => "backward pass",
            Self::Input => "inputs",
            Self::Workspace => "workspace",
            Self::Communication => "communication",
            Self::Other => "other",
        }
    }
}

/// Functions of `torch/nn/modules/module.py` that bring or make a module's tensors; the others are on the way of each forward.
const MODULE_MOVES: [&str; 6] = [
    "Module._apply",
    "Module.to",
    "Module.cuda",
    "Module.to_empty",
    "Module.load_state_dict",
    "Module._load_from_state_dict",
];

/// What a share of a picture is. `frames`: of its stack.
pub fn category(process: &Process, share: &Share, frames: &[ResolvedFrame]) -> Category {
    let is_block = process
        .places()
        .get(share.holder.place)
        .is_some_and(|place| place.layer == Layer::TorchBlock);
    if !is_block {
        return of_driver_memory(process, share);
    }
    if let Some(known) = by_library(frames) {
        return known;
    }
    let python: Vec<&ResolvedFrame> = frames
        .iter()
        .filter(|frame| frame.language == Language::Python)
        .collect();
    let kept = share.kept;
    let torch = TorchPart::of(&python);
    if torch.is_optimizer {
        let stays = kept.at_backward || kept.at_exit || torch.makes_state;
        return if stays {
            Category::OptimizerState
        } else {
            Category::Temporary
        };
    }
    if share.holder.in_backward {
        return match (kept.past_backward, ends_were_seen(process)) {
            (true, _) => Category::Gradient,
            // Checkpointing runs a part of the forward pass again.
            (false, true) if torch.is_checkpoint => Category::Activation,
            (false, true) => Category::Temporary,
            (false, false) => Category::Backward,
        };
    }
    if torch.moves_a_module || is_made_by_a_constructor(&python) {
        return Category::Parameter;
    }
    let trains = process.steps().backwards > 0;
    if python.iter().any(|frame| is_forward(frame)) {
        return if kept.at_backward || !trains {
            Category::Activation
        } else {
            Category::Temporary
        };
    }
    if is_copy_to_device(frames) {
        return Category::Input;
    }
    match (kept.at_backward, kept.past_backward) {
        (true, false) if ends_were_seen(process) => Category::Activation,
        (false, _) if trains => Category::Temporary,
        _ => Category::Other,
    }
}

/// Whether a backward pass was seen to end: before, nothing is known of what outlives one.
fn ends_were_seen(process: &Process) -> bool {
    process.memory().peaks().passes_ended() > 0
}

fn of_driver_memory(process: &Process, share: &Share) -> Category {
    let definitions = process.definitions();
    let module = definitions
        .stack(share.holder.stack)
        .and_then(|stack| definitions.calling_module(stack));
    let Some(module) = module else {
        return Category::Other;
    };
    let name = module.path.rsplit('/').next().unwrap_or(&module.path);
    let scratch = ["libcublas", "libcudnn", "libcusolver", "libcufft"];
    if name.starts_with("libnccl") || name.starts_with("libnvshmem") {
        Category::Communication
    } else if scratch.iter().any(|library| name.starts_with(library)) {
        Category::Workspace
    } else {
        Category::Other
    }
}

fn by_library(frames: &[ResolvedFrame]) -> Option<Category> {
    let native = || {
        frames
            .iter()
            .take_while(|frame| frame.language == Language::Native)
            .map(|frame| frame.function.as_str())
    };
    let scratch = [
        "getNewWorkspace",
        "getCUDABlasLtWorkspace",
        "getCurrentCUDABlas",
        "run_conv_plan",
    ];
    if native().any(|function| function.contains("c10d::")) {
        Some(Category::Communication)
    } else if native().any(|function| scratch.iter().any(|name| function.contains(name))) {
        Some(Category::Workspace)
    } else {
        None
    }
}

/// What the Python frames say that lie in torch, from the innermost out to the program's own.
#[derive(Default)]
struct TorchPart {
    is_optimizer: bool,
    /// An optimizer makes what it keeps in `_init_group`.
    makes_state: bool,
    is_checkpoint: bool,
    moves_a_module: bool,
}

impl TorchPart {
    fn of(python: &[&ResolvedFrame]) -> Self {
        let mut part = Self::default();
        for frame in python {
            let Some(file) = frame.file.as_deref().filter(|file| is_torch_source(file)) else {
                break;
            };
            let function = frame.function.as_str();
            part.is_optimizer |= file.contains("/torch/optim/");
            part.makes_state |= function.ends_with("_init_group");
            part.is_checkpoint |= file.ends_with("/torch/utils/checkpoint.py");
            part.moves_a_module |= file.ends_with("/torch/nn/modules/module.py")
                && MODULE_MOVES.iter().any(|name| function.starts_with(name));
            part.moves_a_module |=
                file.contains("/torch/nn/modules/") && makes_parameters(function);
        }
        // Checkpointing calls the program's own function, whose frames are nearer.
        part.is_checkpoint |= python.iter().any(|frame| {
            let file = frame.file.as_deref();
            file.is_some_and(|file| file.ends_with("/torch/utils/checkpoint.py"))
        });
        part
    }
}

fn makes_parameters(function: &str) -> bool {
    function.ends_with(".__init__") || function.ends_with(".reset_parameters")
}

/// A constructor of the program's or of a package's own made it, directly.
fn is_made_by_a_constructor(python: &[&ResolvedFrame]) -> bool {
    python
        .iter()
        .find(|frame| {
            let file = frame.file.as_deref();
            !file.is_some_and(is_torch_source)
        })
        .is_some_and(|frame| makes_parameters(&frame.function))
        && !python.iter().any(|frame| is_forward(frame))
}

/// torch calls a module's `forward`.
fn is_forward(frame: &ResolvedFrame) -> bool {
    frame.function.starts_with("Module._call_impl")
        && frame.file.as_deref().is_some_and(is_torch_source)
}

/// The program itself brings a tensor to the device, or fills one there.
fn is_copy_to_device(frames: &[ResolvedFrame]) -> bool {
    let copies = [
        "at::_ops::_to_copy",
        "at::_ops::to_",
        "at::native::_to_copy",
    ];
    let from_program = frames
        .iter()
        .find(|frame| frame.language == Language::Python)
        .is_some_and(|frame| {
            whose(frame, &Mine::default()) != crate::symbols::site::Whose::Machinery
        });
    from_program
        && frames
            .iter()
            .take_while(|frame| frame.language == Language::Native)
            .any(|frame| copies.iter().any(|name| frame.function.starts_with(name)))
}
