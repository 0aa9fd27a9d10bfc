//! Whose line it is: the one frame of a stack that a person would look at.

use gpumem_wire::StackId;

use crate::model::Process;
use crate::model::definitions::is_cuda_plumbing;
use crate::symbols::frames::{Language, ResolvedFrame, frames};

/// A line of source that stands for a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The file as the frame names it; a notebook cell is `In [12]`.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// The line's text.
    pub text: Option<String>,
}

/// What the user calls his own, beyond what the rules find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mine {
    /// Patterns for whole paths; `*` stands for any characters. A file that one of them matches is the user's own.
    pub globs: Vec<String>,
}

/// Whose a frame is, from the nearest to the user outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The user's own code.
    User,
    /// An installed package's, other than torch.
    Package,
    /// Of torch, CUDA, the interpreter, a standard or system library, or generated.
    Machinery,
}

/// The site of a stack by the standard rules; `None` where no frame has a name.
pub fn site(process: &Process, stack: StackId) -> Option<Site> {
    site_by(process, stack, &Mine::default())
}

/// The site of a stack: the innermost frame in the user's own code; without one, the innermost outside torch, CUDA and the
/// standard library; without one, the innermost of the main program that has a source line and is not the CUDA runtime's own;
/// without one, the same without a line.
pub fn site_by(process: &Process, stack: StackId, mine: &Mine) -> Option<Site> {
    let frames = frames(process, stack);
    let executable = process.definition().executable.as_str();
    let frame = choose(&frames, executable, mine)?;
    let text = frame
        .file
        .as_deref()
        .zip(frame.line)
        .and_then(|(file, line)| process.definitions().source(file, line).map(str::to_owned));
    Some(Site {
        file: frame
            .file
            .as_deref()
            .map(|file| notebook_cell(file).unwrap_or_else(|| file.into())),
        line: frame.line,
        function: frame.function.clone(),
        text,
    })
}

fn choose<'a>(
    frames: &'a [ResolvedFrame],
    executable: &str,
    mine: &Mine,
) -> Option<&'a ResolvedFrame> {
    let innermost = |wanted: Whose| {
        frames
            .iter()
            .find(|frame| frame.line.is_some() && whose(frame, mine) == wanted)
    };
    let of_program = |with_line: bool| {
        frames.iter().find(|frame| {
            frame.language == Language::Native
                && frame.module.as_deref() == Some(executable)
                && frame.line.is_some() == with_line
                && !is_cuda_runtime(&frame.function)
        })
    };
    let named = || {
        frames.iter().find(|frame| {
            frame
                .module
                .as_deref()
                .is_some_and(|path| !is_machinery_module(path))
                && !is_cuda_runtime(&frame.function)
        })
    };
    innermost(Whose::User)
        .or_else(|| innermost(Whose::Package))
        .or_else(|| of_program(true))
        .or_else(|| of_program(false))
        .or_else(named)
        .or_else(|| {
            frames
                .iter()
                .find(|frame| frame.language == Language::Python)
        })
}

/// Whose a frame is.
pub fn whose(frame: &ResolvedFrame, mine: &Mine) -> Whose {
    let Some(file) = frame.file.as_deref() else {
        return Whose::Machinery;
    };
    if mine.globs.iter().any(|glob| matches_glob(glob, file)) {
        return Whose::User;
    }
    match frame.language {
        Language::Python => whose_python(file, &frame.function),
        Language::Native => whose_native(file, &frame.function, frame.module.as_deref()),
    }
}

fn whose_python(file: &str, function: &str) -> Whose {
    if file.starts_with('<') {
        // `python -c` and the prompt are the user's; the same file name without a module frame is exec'd, generated code.
        let typed = file == "<stdin>" || (file == "<string>" && function == "<module>");
        return if typed || notebook_cell(file).is_some() {
            Whose::User
        } else {
            Whose::Machinery
        };
    }
    if is_torch_source(file) || is_generated(file) {
        Whose::Machinery
    } else if is_installed(file) {
        Whose::Package
    } else if is_python_library(file) {
        Whose::Machinery
    } else {
        Whose::User
    }
}

fn whose_native(file: &str, function: &str, module: Option<&str>) -> Whose {
    let toolchain = [
        "/rustc/",
        "/usr/include/",
        "/usr/src/",
        "/usr/lib/",
        "/build/",
        "/.cargo/registry/",
    ];
    if toolchain.iter().any(|part| file.contains(part))
        || module.is_some_and(is_machinery_module)
        || is_cuda_runtime(function)
    {
        Whose::Machinery
    } else if module.is_some_and(is_installed) {
        Whose::Package
    } else {
        Whose::User
    }
}

/// Whether a name is an entry point of CUDA's: `cuMemAlloc`, `cudaMalloc`, `__cudaPushCallConfiguration`.
fn is_cuda_runtime(function: &str) -> bool {
    let capital = |rest: &str| rest.starts_with(|first: char| first.is_ascii_uppercase());
    function.starts_with("__cuda")
        || function.starts_with("cudart::")
        || function.strip_prefix("cuda").is_some_and(capital)
        || function.strip_prefix("cu").is_some_and(capital)
}

/// Whether an ELF object is CUDA's, torch's, the interpreter or a system library.
fn is_machinery_module(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let parts = [
        "libcu",
        "libnv",
        "libnccl",
        "libcupti",
        "libc10",
        "libtorch",
        "libpython",
        "python3",
        "ld-linux",
        "libc.so",
        "libstdc++",
        "libgcc_s",
        "libm.so",
        "libpthread",
        "linux-vdso",
    ];
    is_cuda_plumbing(path)
        || name == "python"
        || parts.iter().any(|part| name.starts_with(part))
        || [
            "/lib/x86_64-linux-gnu/",
            "/lib/aarch64-linux-gnu/",
            "/lib64/",
            "/lib/python3",
        ]
        .iter()
        .any(|folder| path.contains(folder) && !is_installed(path))
}

fn is_installed(path: &str) -> bool {
    path.contains("/site-packages/") || path.contains("/dist-packages/")
}

/// torch, installed or built in its own tree.
fn is_torch_source(file: &str) -> bool {
    let Some((_, inside)) = file.rsplit_once("/torch/") else {
        return false;
    };
    let folder = inside.split('/').next().unwrap_or(inside);
    let own = [
        "autograd",
        "cuda",
        "distributed",
        "fx",
        "nn",
        "optim",
        "utils",
        "func",
        "jit",
        "amp",
        "ao",
    ];
    is_installed(file) || folder.starts_with('_') || own.contains(&folder)
}

/// Code that a compiler wrote while the program ran.
fn is_generated(file: &str) -> bool {
    file.contains("/torchinductor_") || file.contains("/.triton/cache/")
}

/// Python's standard library, in a folder or in a zip.
fn is_python_library(file: &str) -> bool {
    let in_folder = |marker: &str| {
        file.rsplit_once(marker)
            .is_some_and(|(_, rest)| rest.starts_with(|digit: char| digit.is_ascii_digit()))
    };
    in_folder("/lib/python3.") || in_folder("/lib64/python3.") || {
        file.rsplit_once("/python3").is_some_and(|(_, rest)| {
            rest.split('/')
                .next()
                .is_some_and(|name| name.ends_with(".zip"))
        })
    }
}

/// `In [12]` for the twelfth cell of a notebook.
fn notebook_cell(file: &str) -> Option<String> {
    let number = file.strip_prefix("<ipython-input-")?.split('-').next()?;
    number
        .bytes()
        .all(|digit| digit.is_ascii_digit())
        .then(|| format!("In [{number}]"))
}

/// Whether a pattern with `*` for any characters matches all of a text.
fn matches_glob(glob: &str, text: &str) -> bool {
    let Some((head, rest)) = glob.split_once('*') else {
        return glob == text;
    };
    text.strip_prefix(head).is_some_and(|tail| {
        tail.char_indices()
            .map(|(at, _)| at)
            .chain([tail.len()])
            .any(|at| matches_glob(rest, &tail[at..]))
    })
}
