//! Symbols of this very executable, and whose line it is.

use std::fs;

use gpumem_wire::define::{
    BuildId, ModuleDefinition, ProcessDefinition, StackDefinition, SymbolDefinition,
};
use gpumem_wire::{Definition, Frame, ModuleId, StackId};

use super::*;
use crate::model::testing::{Step, Trace, alloc};
use crate::symbols::site::{Whose, whose};

/// The load bias of this executable: where `/proc/self/maps` has its first page.
fn load_bias(executable: &str) -> u64 {
    let maps = fs::read_to_string("/proc/self/maps").expect("/proc");
    let line = maps
        .lines()
        .find(|line| line.ends_with(executable))
        .expect("this executable");
    let start = line.split('-').next().expect("an address");
    u64::from_str_radix(start, 16).expect("an address")
}

#[inline(never)]
fn a_function_of_our_own(x: u32) -> u32 {
    std::hint::black_box(x) + 1
}
const ITS_LINE: u32 = line!() - 3;

#[inline(always)]
fn part_of_a_part(x: u32) -> u32 {
    std::hint::black_box(x) * 3
}

#[inline(always)]
fn part_of_another(x: u32) -> u32 {
    part_of_a_part(std::hint::black_box(x))
}

#[inline(never)]
fn one_with_a_part(x: u32) -> u32 {
    part_of_another(std::hint::black_box(x))
}
const CALL_LINE: u32 = line!() - 2;

fn process_with(build_id: BuildId, address: u64, executable: &str) -> Process {
    let mut process = Process::default();
    let module = ModuleId(1);
    for definition in [
        Definition::Process(ProcessDefinition {
            executable: executable.into(),
            ..ProcessDefinition::default()
        }),
        Definition::Module(ModuleDefinition {
            id: module,
            path: executable.into(),
            start: 0,
            build_id,
        }),
        Definition::Stack(StackDefinition {
            id: StackId(2),
            left_out: 0,
            frames: vec![Frame::Native { module, address }],
        }),
    ] {
        process.define(definition);
    }
    process
}

fn build_id_of(path: &str) -> BuildId {
    let id = blazesym::helper::read_elf_build_id(path).expect("an ELF file");
    let id = id.unwrap_or_default();
    let mut build_id = BuildId {
        length: id.len() as u8,
        ..BuildId::default()
    };
    build_id.bytes[..id.len()].copy_from_slice(&id);
    build_id
}

#[test]
fn a_frame_of_this_executable_gets_its_name_and_line() {
    assert_eq!(a_function_of_our_own(1), 2);
    let executable = std::env::current_exe().expect("a path");
    let executable = executable.to_str().expect("a path in UTF-8");
    let function = a_function_of_our_own as fn(u32) -> u32;
    let address = function as usize as u64 - load_bias(executable) + 1;
    let mut process = process_with(build_id_of(executable), address, executable);
    let found = symbolise(&mut process);
    assert!(
        matches!(&found[0], Definition::Symbol(SymbolDefinition { functions, .. }) if !functions.is_empty()),
        "{found:?}"
    );
    let frames = frames(&process, StackId(2));
    let last = frames.last().expect("a frame");
    assert!(
        last.function.contains("a_function_of_our_own"),
        "{frames:?}"
    );
    assert!(
        last.file
            .as_deref()
            .is_some_and(|file| file.ends_with("symbols/tests.rs")),
        "{frames:?}"
    );
    assert_eq!(last.line, Some(ITS_LINE));
    // All is known now, so nothing is looked up again.
    assert!(symbolise(&mut process).is_empty());
}

#[test]
fn a_function_inlined_into_another_comes_before_it() {
    assert_eq!(one_with_a_part(1), 3);
    let executable = std::env::current_exe().expect("a path");
    let executable = executable.to_str().expect("a path in UTF-8");
    let function = one_with_a_part as fn(u32) -> u32;
    let start = function as usize as u64 - load_bias(executable) + 1;
    let mut process = process_with(build_id_of(executable), start, executable);
    for offset in 0..200 {
        process.define(Definition::Stack(StackDefinition {
            id: StackId(10 + offset),
            left_out: 0,
            frames: vec![Frame::Native {
                module: ModuleId(1),
                address: start + u64::from(offset),
            }],
        }));
    }
    symbolise(&mut process);
    let nested = (10..210)
        .map(|stack| frames(&process, StackId(stack)))
        .find(|frames| {
            frames
                .iter()
                .any(|frame| frame.function.contains("part_of_a_part"))
        })
        .expect("an address in the inlined part");
    let names: Vec<&str> = nested.iter().map(|frame| frame.function.as_str()).collect();
    let at = |wanted: &str| names.iter().position(|name| name.contains(wanted));
    let whole = at("one_with_a_part");
    assert!(at("part_of_a_part") < at("part_of_another"), "{names:?}");
    assert!(at("part_of_another") < whole, "{names:?}");
    let whole = whole.and_then(|index| nested.get(index)).expect("both");
    assert_eq!(whole.line, Some(CALL_LINE), "{nested:?}");
}

#[test]
fn another_build_of_a_file_gives_no_names() {
    let executable = std::env::current_exe().expect("a path");
    let executable = executable.to_str().expect("a path in UTF-8");
    let other = BuildId {
        length: 20,
        ..BuildId::default()
    };
    let mut process = process_with(other, 0x1234, executable);
    assert!(symbolise(&mut process).is_empty());
    let name = &frames(&process, StackId(2))[0].function;
    assert!(name.ends_with("+0x1234"), "{name}");
}

#[test]
fn the_text_of_a_site_is_read_where_it_ran() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("train.py"), "a = 1\n  x = grow()  \n").expect("the file");
    let mut trace = Trace::new();
    trace.push(alloc(0x1000, 1).at("train.py:2 step"));
    let mut process = trace.process();
    process.define(Definition::Process(ProcessDefinition {
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        directory: folder.path().to_string_lossy().into_owned(),
        ..ProcessDefinition::default()
    }));
    let found = symbolise(&mut process);
    assert_eq!(found.len(), 1);
    let site = site(&process, trace.events()[0].stack).expect("a site");
    assert_eq!(
        (site.line, site.text.as_deref()),
        (Some(2), Some("x = grow()"))
    );
    // A file that changed since is not what ran.
    process.define(Definition::Process(ProcessDefinition {
        started_ns: 1,
        ..process.definition().clone()
    }));
    trace.push(alloc(0x1000, 1).at("train.py:1 step"));
    for definition in trace.definitions() {
        if !matches!(definition, Definition::Process(_)) {
            process.define(definition.clone());
        }
    }
    process.apply(&trace.events()[1]);
    assert!(symbolise(&mut process).is_empty());
}

/// The site of one step's stack as "file:line function".
fn site_of(step: Step) -> Option<String> {
    site_of_in(step, "/opt/app")
}

fn site_of_in(step: Step, executable: &str) -> Option<String> {
    let mut trace = Trace::new();
    trace.push(step);
    let mut process = trace.process();
    process.define(Definition::Process(ProcessDefinition {
        executable: executable.into(),
        ..ProcessDefinition::default()
    }));
    let site = site(&process, trace.events()[0].stack)?;
    Some(format!(
        "{}:{} {}",
        site.file.as_deref().unwrap_or("-"),
        site.line.unwrap_or(0),
        site.function
    ))
}

const TORCH: &str =
    "/usr/lib/python3.12/site-packages/torch/nn/modules/linear.py:114 Linear.forward";

#[test]
fn the_user_s_own_line_comes_first() {
    let site = |step| site_of(step).expect("a site");
    let base = || {
        alloc(0x1000, 1)
            .native("libcudart.so.12", "cudaMalloc", "", 0)
            .native(
                "/x/site-packages/torch/lib/libtorch_cpu.so",
                "at::empty",
                "/pytorch/e.cpp",
                9,
            )
            .at(TORCH)
    };
    assert_eq!(
        site(
            base()
                .at("/usr/lib/python3.12/contextlib.py:81 inner")
                .at("/home/me/train.py:31 step")
                .at("/home/me/main.py:5 <module>")
        ),
        "/home/me/train.py:31 step"
    );
    assert_eq!(
        site(
            base()
                .at("<frozen importlib._bootstrap>:1 _call")
                .at("<eval_with_key>.3:4 forward")
                .at("/tmp/torchinductor_me/ab/cab.py:50 call")
                .at("<ipython-input-12-abc>:3 <module>")
        ),
        "In [12]:3 <module>"
    );
    assert_eq!(
        site(base().at("<string>:1 <module>")),
        "<string>:1 <module>"
    );
    assert_eq!(
        site(
            base()
                .at("<string>:2 __init__")
                .at("/v/lib/python3.11/site-packages/transformers/trainer.py:9 train")
                .at("/usr/lib/python3.11/runpy.py:8 run")
        ),
        "/v/lib/python3.11/site-packages/transformers/trainer.py:9 train"
    );
}

#[test]
fn a_program_without_python_is_named_by_its_own_lines() {
    let site = |step| site_of(step).expect("a site");
    assert_eq!(
        site(
            alloc(0x1000, 1)
                .native("/opt/app", "cudaMalloc", "/build/cudart.c", 5)
                .native("/opt/app", "load_tile", "/src/tiles.c", 12)
                .native("/opt/app", "main", "/src/main.c", 30)
        ),
        "/src/tiles.c:12 load_tile"
    );
    // "custom" begins with "cu", and is nobody's but the user's.
    assert_eq!(
        site(alloc(0x1000, 1).native("/opt/app", "custom_alloc", "/src/c.c", 2)),
        "/src/c.c:2 custom_alloc"
    );
    assert_eq!(
        site(
            alloc(0x1000, 1)
                .native("/opt/app", "cuMemAlloc", "", 0)
                .native("/opt/app", "load_tile", "", 0)
        ),
        "-:0 load_tile"
    );
    assert_eq!(
        site(
            alloc(0x1000, 1)
                .native("/lib/x86_64-linux-gnu/libc.so.6", "start", "", 0)
                .native("/opt/libplugin.so", "lose_one", "", 0)
        ),
        "-:0 lose_one"
    );
    assert_eq!(site_of(alloc(0x1000, 1)), None);
}

#[test]
fn rust_s_own_library_is_not_the_user_s() {
    assert_eq!(
        site_of(
            alloc(0x1000, 1)
                .native(
                    "/opt/app",
                    "Vec::push",
                    "/rustc/abc/library/alloc/vec.rs",
                    9
                )
                .native("/opt/app", "keep", "/home/me/keep.rs", 3)
        )
        .as_deref(),
        Some("/home/me/keep.rs:3 keep")
    );
}

#[test]
fn the_interpreter_is_no_program_of_the_user_s() {
    assert_eq!(
        site_of_in(
            alloc(0x1000, 1)
                .native("/usr/bin/python3.12", "_PyEval", "/build/ceval.c", 1)
                .at("/home/me/a.py:4 f"),
            "/usr/bin/python3.12"
        )
        .as_deref(),
        Some("/home/me/a.py:4 f")
    );
}

#[test]
fn what_one_calls_one_s_own_is_one_s_own() {
    let mut trace = Trace::new();
    trace.push(
        alloc(0x1000, 1)
            .at("/v/site-packages/mylib/a.py:1 f")
            .at("/home/me/b.py:2 g"),
    );
    let process = trace.process();
    let stack = trace.events()[0].stack;
    let mine = Mine {
        globs: vec!["*/mylib/*.py".into()],
    };
    let line = |mine: &Mine| site_by(&process, stack, mine).and_then(|site| site.line);
    assert_eq!((line(&mine), line(&Mine::default())), (Some(1), Some(2)));
}

#[test]
fn whose_a_file_is_goes_by_where_it_is_installed_not_by_what_a_folder_is_called() {
    let python = |file: &str| {
        let frame = ResolvedFrame {
            function: "f".into(),
            file: Some(file.into()),
            line: Some(1),
            language: Language::Python,
            module: None,
        };
        whose(&frame, &Mine::default())
    };
    for (file, owner) in [
        (
            "/v/lib/python3.11/site-packages/torch/nn/modules/linear.py",
            Whose::Machinery,
        ),
        (
            "/usr/lib/python3/dist-packages/torch/cuda/memory.py",
            Whose::Machinery,
        ),
        ("/home/u/pytorch/torch/nn/functional.py", Whose::Machinery),
        (
            "/home/u/torch/.venv/lib/python3.11/site-packages/requests/api.py",
            Whose::Package,
        ),
        (
            "/v/site-packages/lightning/fabric/torch/x.py",
            Whose::Package,
        ),
        ("/v/site-packages/torchvision/ops/boxes.py", Whose::Package),
        ("/home/u/torch/utils/train.py", Whose::User),
        ("/home/u/torch/train.py", Whose::User),
        ("/opt/conda/lib/python3.12/runpy.py", Whose::Machinery),
        ("/opt/py/lib/python3.13t/runpy.py", Whose::Machinery),
        ("/home/u/lib/python3.9projects/a.py", Whose::User),
        ("/tmp/ipykernel_77/1234567890.py", Whose::User),
        ("/tmp/torchinductor_u/ab/cab.py", Whose::Machinery),
    ] {
        assert_eq!(python(file), owner, "{file}");
    }
    let native = |file: &str| {
        let frame = ResolvedFrame {
            function: "grow".into(),
            file: Some(file.into()),
            line: Some(1),
            language: Language::Native,
            module: Some("/opt/app/server".into()),
        };
        whose(&frame, &Mine::default())
    };
    for (file, owner) in [
        ("/build/app/src/server.cc", Whose::User),
        ("/home/u/build/gen.cc", Whose::User),
        ("/build/server.cc", Whose::User),
        ("/home/u/rustc/lexer.rs", Whose::User),
        (
            "/build/glibc-B3wQXB/glibc-2.31/csu/libc-start.c",
            Whose::Machinery,
        ),
        (
            "/build/reproducible-path/glibc-2.36/csu/libc-start.c",
            Whose::Machinery,
        ),
        (
            "/build/gcc-14-HtnwCo/gcc-14/src/libstdc++-v3/new_op.cc",
            Whose::Machinery,
        ),
        ("/rustc/abc/library/alloc/src/vec/mod.rs", Whose::Machinery),
        ("/usr/include/c++/12/bits/stl_vector.h", Whose::Machinery),
        (
            "/opt/conda/x86_64-conda-linux-gnu/include/c++/13/vector",
            Whose::Machinery,
        ),
        (
            "/usr/local/cuda-12.4/include/thrust/device_vector.h",
            Whose::Machinery,
        ),
        (
            "/home/u/.cargo/registry/src/index-6f/cudarc-0.1/src/lib.rs",
            Whose::Machinery,
        ),
    ] {
        assert_eq!(native(file), owner, "{file}");
    }
}

#[test]
fn a_cell_is_named_by_its_number_where_it_is_known() {
    for (file, name) in [
        ("<ipython-input-12-0a1b2c>", "In [12]:3 f"),
        ("/tmp/ipython-input-12-0a1b2c.py", "In [12]:3 f"),
        (
            "/tmp/ipython-input-1234567890.py",
            "In [cell 1234567890]:3 f",
        ),
        (
            "/tmp/ipykernel_4711/1234567890.py",
            "In [cell 1234567890]:3 f",
        ),
        ("/scratch/t/ipykernel_4711/99.py", "In [cell 99]:3 f"),
        (
            "/tmp/ipykernel_4711/lib/99.py",
            "/tmp/ipykernel_4711/lib/99.py:3 f",
        ),
        (
            "/home/u/ipykernel_notes/99.py",
            "/home/u/ipykernel_notes/99.py:3 f",
        ),
    ] {
        let step = alloc(0x1000, 1).at(&format!("{file}:3 f"));
        assert_eq!(site_of(step).as_deref(), Some(name));
    }
}
