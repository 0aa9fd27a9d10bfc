//! Whose line it is: the one frame of a stack that a person would look at.

use gpumem_wire::StackId;

use crate::model::Process;
use crate::model::definitions::is_cuda_plumbing;
use crate::symbols::frames::{Language, ResolvedFrame, frames};

/// A line of source that stands for a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Site {
    /// The file as the frame names it; a notebook cell is `In [12]`, or `In [cell HASH]` where its number is not known.
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
    if is_toolchain_source(file)
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

/// Source of a compiler, of its library, of CUDA or of the system, as the builder of a distribution named it.
fn is_toolchain_source(file: &str) -> bool {
    const PREFIXES: [&str; 5] = [
        "/rustc/",
        "/usr/include/",
        "/usr/lib/",
        "/usr/local/cuda",
        // Where Fedora puts the source of its packages; /usr/src itself is where images keep the user's.
        "/usr/src/debug/",
    ];
    // Debian and Ubuntu build in /build/PACKAGE-RANDOM/, and so do users in /build/.
    const PACKAGES: [&str; 5] = ["glibc-", "gcc-", "rustc-", "llvm-toolchain-", "python3"];
    const PARTS: [&str; 3] = ["/include/c++/", "/.cargo/registry/", "/cargo/registry/src/"];
    let built = file.strip_prefix("/build/").is_some_and(|rest| {
        let rest = rest.strip_prefix("reproducible-path/").unwrap_or(rest);
        PACKAGES.iter().any(|package| rest.starts_with(package))
    });
    built
        || PREFIXES.iter().any(|prefix| file.starts_with(prefix))
        || PARTS.iter().any(|part| file.contains(part))
}

/// torch's Python, installed or in its own repository. A folder that a user calls torch is his; torch's C++ is known by its
/// modules.
pub(crate) fn is_torch_source(file: &str) -> bool {
    [
        "/site-packages/torch/",
        "/dist-packages/torch/",
        "/pytorch/torch/",
    ]
    .iter()
    .any(|folder| file.contains(folder))
}

/// Code that a compiler wrote while the program ran.
fn is_generated(file: &str) -> bool {
    file.contains("/torchinductor_") || file.contains("/.triton/cache/")
}

/// Python's standard library, in a folder or in a zip.
fn is_python_library(file: &str) -> bool {
    let in_folder = |marker: &str| {
        file.rsplit_once(marker).is_some_and(|(_, rest)| {
            let (version, _) = rest.split_once('/').unwrap_or((rest, ""));
            // Built without the interpreter lock: python3.13t.
            let number = version.strip_suffix('t').unwrap_or(version);
            !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    in_folder("/lib/python3.") || in_folder("/lib64/python3.") || {
        file.rsplit_once("/python3").is_some_and(|(_, rest)| {
            rest.split('/')
                .next()
                .is_some_and(|name| name.ends_with(".zip"))
        })
    }
}

/// `In [12]` for the twelfth cell of a notebook. Jupyter since ipykernel 6 names a cell's file by a hash of its text alone
/// (`/tmp/ipykernel_PID/HASH.py`): its number is not known, and `In [cell HASH]` is the same name each time it is run.
fn notebook_cell(file: &str) -> Option<String> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (folders, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.strip_suffix(".py").unwrap_or(name);
    let folder = folders.rsplit('/').next().unwrap_or(folders);
    if let Some(cell) = file.strip_prefix("<ipython-input-").or_else(|| {
        // As Colab has it.
        stem.strip_prefix("ipython-input-")
    }) {
        return match cell.split_once('-') {
            Some((number, _)) if digits(number) => Some(format!("In [{number}]")),
            Some(_) => None,
            None => digits(cell).then(|| format!("In [cell {cell}]")),
        };
    }
    let of_kernel = folder.strip_prefix("ipykernel_").is_some_and(digits);
    (of_kernel && digits(stem)).then(|| format!("In [cell {stem}]"))
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
