//! What a framework's user scope is, told from the Python frames of its event.

use gpumem_wire::{Frame, StackId};

use crate::model::definitions::Definitions;

/// A scope that torch enters by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// `Optimizer.step`.
    OptimizerStep,
    /// `Optimizer.zero_grad`.
    ZeroGrad,
    /// A DataLoader hands out a batch.
    DataLoader,
    /// A scope of the program's own.
    Other,
}

/// The files through which every scope is entered; they say nothing about which it is.
const ENTRANCES: [&str; 2] = ["torch/autograd/profiler.py", "torch/_ops.py"];

impl Scope {
    /// The scope of a stack: that of the innermost Python frame beyond the profiler's own.
    pub fn of(definitions: &Definitions, stack: StackId) -> Self {
        let innermost = definitions.stack(stack).and_then(|stack| {
            stack
                .frames
                .iter()
                .filter_map(|frame| match *frame {
                    Frame::Python { code, .. } => definitions.code(code),
                    _ => None,
                })
                .find(|code| !ENTRANCES.iter().any(|file| is_file(&code.file, file)))
        });
        let Some(code) = innermost else {
            return Self::Other;
        };
        if is_file(&code.file, "torch/optim/optimizer.py") {
            match code.function.as_str() {
                "Optimizer.profile_hook_step.<locals>.wrapper" => Self::OptimizerStep,
                "Optimizer.zero_grad" => Self::ZeroGrad,
                _ => Self::Other,
            }
        } else if is_file(&code.file, "torch/utils/data/dataloader.py")
            && code.function == "_BaseDataLoaderIter.__next__"
        {
            Self::DataLoader
        } else {
            Self::Other
        }
    }
}

/// Whether `path` is `file` in some folder.
fn is_file(path: &str, file: &str) -> bool {
    path.strip_suffix(file)
        .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{Trace, dataloader_next, event, optimizer_step, zero_grad};
    use gpumem_wire::Kind;

    #[test]
    fn the_frame_beyond_the_profiler_tells() {
        let other = || event(Kind::UserScope, [0; 4]);
        for (step, scope) in [
            (optimizer_step(), Scope::OptimizerStep),
            (zero_grad(), Scope::ZeroGrad),
            (dataloader_next(), Scope::DataLoader),
            (other(), Scope::Other),
            (
                other().at("torch/optim/optimizer.py:9 Optimizer.zero_grad"),
                Scope::ZeroGrad,
            ),
            (
                other().at("mytorch/optim/optimizer.py:9 Optimizer.zero_grad"),
                Scope::Other,
            ),
            (
                other()
                    .at("train.py:9 f")
                    .at("torch/optim/optimizer.py:9 Optimizer.zero_grad"),
                Scope::Other,
            ),
        ] {
            let mut trace = Trace::new();
            trace.push(step);
            let process = trace.process();
            assert_eq!(
                Scope::of(process.definitions(), trace.events()[0].stack),
                scope
            );
        }
    }
}
