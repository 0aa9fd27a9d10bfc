//! A stack with all its names.

use gpumem_wire::{Frame, ModuleId, StackId};

use crate::model::Process;

/// What a frame was written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// Python.
    Python,
    /// Compiled.
    Native,
}

impl Language {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Native => "native",
        }
    }
}

/// A frame as a person reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResolvedFrame {
    /// The function; `module+0xoffset` where it is not known, `...` where frames were left out.
    pub function: String,
    /// The source file as the frame names it.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// What it was written in.
    pub language: Language,
    /// The ELF object of a native frame.
    pub module: Option<String>,
}

/// The frames of a stack, innermost first. An address that stands for several functions, inlined into each other, gives a
/// frame for each. Empty where no stack was taken or its definition was lost.
pub fn frames(process: &Process, stack: StackId) -> Vec<ResolvedFrame> {
    let Some(stack) = process.definitions().stack(stack) else {
        return Vec::new();
    };
    let mut resolved = Vec::with_capacity(stack.frames.len());
    for frame in &stack.frames {
        match *frame {
            Frame::Native { module, address } => native(process, module, address, &mut resolved),
            Frame::Unknown { address } => {
                resolved.push(nameless(format!("0x{address:x}")));
            }
            Frame::Python { code, line } => {
                let code = process.definitions().code(code);
                resolved.push(ResolvedFrame {
                    function: code.map_or_else(|| "?".into(), |code| code.function.clone()),
                    file: code.map(|code| code.file.clone()),
                    line: (line > 0).then_some(line),
                    language: Language::Python,
                    module: None,
                });
            }
            Frame::Elided => resolved.push(nameless(format!("... {} frames", stack.left_out))),
        }
    }
    resolved
}

/// The operator of torch that the native frames name: in a backward pass its node (`ConvolutionBackward0`), else the operator
/// as the dispatcher has it (`convolution`), the outermost: what a program calls.
pub fn operator(frames: &[ResolvedFrame]) -> Option<String> {
    let native = || {
        frames
            .iter()
            .take_while(|frame| frame.language == Language::Native)
            .map(|frame| frame.function.as_str())
    };
    let between = |function: &str, start: &str| -> Option<String> {
        let rest = function.split_once(start)?.1;
        let name = rest.split_once("::").map_or(rest, |(name, _)| name);
        Some(name.split('(').next().unwrap_or(name).to_owned())
    };
    native()
        .filter(|function| function.contains("::apply"))
        .find_map(|function| between(function, "torch::autograd::generated::"))
        .or_else(|| {
            native()
                .filter_map(|function| between(function, "at::_ops::"))
                .last()
        })
}

fn nameless(function: String) -> ResolvedFrame {
    ResolvedFrame {
        function,
        file: None,
        line: None,
        language: Language::Native,
        module: None,
    }
}

fn native(process: &Process, module: ModuleId, address: u64, out: &mut Vec<ResolvedFrame>) {
    let definitions = process.definitions();
    let path = definitions.module(module).map(|module| module.path.clone());
    let functions = definitions.symbol(module, address).unwrap_or(&[]);
    if functions.is_empty() {
        let name = path
            .as_deref()
            .map_or("?", |path| path.rsplit('/').next().unwrap_or(path));
        out.push(ResolvedFrame {
            function: format!("{name}+0x{address:x}"),
            module: path,
            ..nameless(String::new())
        });
        return;
    }
    out.extend(functions.iter().map(|function| ResolvedFrame {
        function: function.function.clone(),
        file: (!function.file.is_empty()).then(|| function.file.clone()),
        line: (function.line > 0).then_some(function.line),
        language: Language::Native,
        module: path.clone(),
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::{Trace, alloc};

    #[test]
    fn names_come_innermost_first() {
        let mut trace = Trace::new();
        trace.push(
            alloc(0x1000, 1)
                .native("libfoo.so", "grow", "foo.c", 7)
                .at("train.py:31 step"),
        );
        let process = trace.process();
        let names: Vec<(String, Option<u32>)> = frames(&process, trace.events()[0].stack)
            .into_iter()
            .map(|frame| (frame.function, frame.line))
            .collect();
        assert_eq!(names, [("grow".into(), Some(7)), ("step".into(), Some(31))]);
        assert!(frames(&process, StackId::NONE).is_empty());
    }
}
