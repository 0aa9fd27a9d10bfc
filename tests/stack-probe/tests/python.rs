//! Python frames as the probe sees them against the interpreter's own account, under the real interpreters of this machine.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

/// Every interpreter of a version that is there: Debian's, pyenv's, and those in the path.
fn interpreters(minor: u32) -> Vec<PathBuf> {
    let name = format!("python3.{minor}");
    let mut candidates = vec![
        PathBuf::from("/usr/bin").join(&name),
        PathBuf::from("/usr/local/bin").join(&name),
    ];
    let versions = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    for version in versions
        .and_then(|folder| folder.read_dir().ok())
        .into_iter()
        .flatten()
        .flatten()
    {
        candidates.push(version.path().join("bin").join(&name));
    }
    candidates.retain(|path| path.is_file());
    candidates.sort();
    candidates
}

fn each(minor: u32, mut check: impl FnMut(&PathBuf)) {
    let found = interpreters(minor);
    if found.is_empty() {
        println!("skipped: no Python 3.{minor} on this machine");
    }
    found.iter().for_each(&mut check);
}

/// The library or program made of a C file beside the tests, if there is a C compiler.
fn compiled(name: &str, kind: &[&str]) -> Option<PathBuf> {
    if Command::new("gcc").arg("--version").output().is_err() {
        println!("skipped: no C compiler on this machine");
        return None;
    }
    let library = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let flags = ["-O2", "-fno-optimize-sibling-calls", "-pthread", "-o"];
    let mut compile = Command::new("gcc");
    compile.args(kind).args(flags).arg(&library);
    common::run(compile.arg(common::beside(&format!("{name}.c"))));
    Some(library)
}

/// What `exactness.py` says that it compared.
fn compared(text: &str) -> u32 {
    let mut words = text.split_whitespace();
    assert_eq!(words.next(), Some("compared"), "{text}");
    let number = words.next().and_then(|number| number.parse().ok());
    number.unwrap_or(0)
}

fn exact(minor: u32) {
    each(minor, |python| {
        let text = common::run(
            Command::new(python)
                .arg(common::beside("exactness.py"))
                .arg(common::probe()),
        );
        assert!(compared(&text) > 3000, "{text}");
    });
}

/// The same on a thread that is not the first one.
const ON_A_THREAD: &str = "
import runpy, sys, threading
ended = []
def work():
    try:
        runpy.run_path(sys.argv[2], run_name='__main__')
    except SystemExit as end:
        ended.append(end.code)
threading.stack_size(64 << 20)
thread = threading.Thread(target=work)
thread.start()
thread.join()
sys.exit(ended != [False])
";

#[test]
fn frames_equal_those_of_python_on_any_thread() {
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let mut command = Command::new(python);
            command.args(["-c", ON_A_THREAD]).arg(common::probe());
            let text = common::run(command.arg(common::beside("exactness.py")));
            assert!(compared(&text) > 3000, "{text}");
        });
    }
}

#[test]
fn frames_equal_those_of_python_3_11() {
    exact(11);
}

#[test]
fn frames_equal_those_of_python_3_12() {
    exact(12);
}

#[test]
fn frames_equal_those_of_python_3_13() {
    exact(13);
}

const UNKNOWN: &str = "
import ctypes, sys
probe = ctypes.CDLL(sys.argv[1])
assert probe.probe_id(0) > 1, 'native frames alone'
assert probe.probe_id(1) == 0, 'no Python frames'
assert probe.probe_python() == -sys.version_info.minor, probe.probe_python()
print('refused')
";

#[test]
fn an_unknown_version_gives_native_frames_and_says_so() {
    for minor in [8, 9, 10] {
        each(minor, |python| {
            let text = common::run(
                Command::new(python)
                    .args(["-c", UNKNOWN])
                    .arg(common::probe()),
            );
            assert_eq!(text, "refused\n");
        });
    }
}

/// Daemon threads go on capturing while the interpreter frees their states.
const FINALISING: &str = "
import atexit, ctypes, os, sys, threading
probe = ctypes.CDLL(sys.argv[1])
started = threading.Barrier(4)
def work():
    started.wait()
    while True:
        probe.probe_time(0, 20)
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
class Last:
    def __del__(self, probe=probe, write=os.write):
        write(1, b'finalising %d\\n' % probe.probe_is_finalising())
sys.last = Last()
assert probe.probe_id(0) > 1
assert probe.probe_is_finalising() == 0
started.wait()
atexit.register(lambda: print('at exit', probe.probe_is_finalising(), flush=True))
";

#[test]
fn the_end_of_the_interpreter_is_survived() {
    for minor in [11, 12, 13] {
        each(minor, |python| {
            for _ in 0..20 {
                let mut command = Command::new(python);
                command.args(["-c", FINALISING]).arg(common::probe());
                // What is freed is overwritten at once.
                let text =
                    common::run(command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0"));
                assert_eq!(text, "at exit 0\nfinalising 1\n");
            }
        });
    }
}

/// The shared library of an interpreter, if it has one, and its folder.
fn library_of(python: &Path, minor: u32) -> Option<(PathBuf, PathBuf)> {
    let home = python.parent()?.parent()?;
    let library = home.join(format!("lib/libpython3.{minor}.so.1.0"));
    library.is_file().then(|| (library, home.to_owned()))
}

/// Python is ended on another thread than the first, which is inside of it: what is freed is overwritten.
#[test]
fn an_embedder_may_end_python_on_any_thread() {
    let Some(program) = compiled("embedded", &["-rdynamic"]) else {
        return;
    };
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let Some((library, home)) = library_of(python, minor) else {
                return;
            };
            for _ in 0..40 {
                let mut command = Command::new(&program);
                command.arg(&library).arg(common::probe());
                let overwrite = "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165";
                command
                    .env("PYTHONHOME", &home)
                    .env("GLIBC_TUNABLES", overwrite);
                assert_eq!(common::run(&mut command), "went on\n");
            }
        });
    }
}

/// Threads that were not made by Python call it from two places, at the same depth: the interpreter's frames lie at the same
/// addresses, and what is outside of them differs.
const CALLERS: &str = "
import ctypes, sys
probe, callers = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(sys.argv[2])
seen = []
def capture(place):
    buffer = ctypes.create_string_buffer(1 << 16)
    size = probe.probe_capture(0, buffer, ctypes.c_size_t(len(buffer)))
    rows = [row.split('\t') for row in buffer.raw[:size].decode().splitlines()]
    outside = [tuple(row[2:]) for row in rows if row[0] == 'N' and row[1].endswith('callers.so')]
    assert [row[1] for row in rows if row[0] == 'P'] == ['capture'], rows
    seen.append((place, outside))
callback = ctypes.CFUNCTYPE(None, ctypes.c_int)(capture)
assert callers.run(callback, 20) == 0
first, second = seen[0][1], seen[1][1]
assert len(first) == len(second) == 2 and first != second, (first, second)
assert seen == [(0, first), (1, second)] * 10, seen
print('told apart')
";

#[test]
fn what_calls_python_is_seen_anew() {
    let Some(library) = compiled("callers", &["-shared", "-fPIC"]) else {
        return;
    };
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let mut command = Command::new(python);
            command
                .args(["-c", CALLERS])
                .arg(common::probe())
                .arg(&library);
            assert_eq!(common::run(&mut command), "told apart\n");
        });
    }
}

/// Machine code that no object describes: the native stack ends there, the Python stack does not.
const GENERATED: &str = "
import ctypes, mmap, struct, sys
probe = ctypes.PyDLL(sys.argv[1])
target = ctypes.cast(probe.probe_capture, ctypes.c_void_p).value
# sub rsp, 8; mov rax, target; call rax; add rsp, 8; ret
code = bytes.fromhex('4883ec0848b8') + struct.pack('<Q', target) + bytes.fromhex('ffd04883c408c3')
memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
memory.write(code)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
generated = ctypes.PYFUNCTYPE(ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(address)
def inner():
    buffer = ctypes.create_string_buffer(1 << 16)
    size = generated(0, buffer, len(buffer))
    return buffer.raw[:size].decode()
rows = [row.split('\t') for row in inner().splitlines()]
assert rows[0] == ['U', '%x' % (address + 16)], rows
assert [row[:2] for row in rows[1:]] == [['P', 'inner'], ['P', '<module>']], rows
print('met')
";

#[test]
fn generated_code_hides_native_frames_only() {
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let mut command = Command::new(python);
            command.args(["-c", GENERATED]).arg(common::probe());
            assert_eq!(common::run(&mut command), "met\n");
        });
    }
}

/// Within a collection, whoever began it; without the GIL on the first thread alone.
const COLLECTING: &str = "
import ctypes, gc, sys, threading, time
probe, released = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])
assert probe.probe_id(0) > 1
class Cycle:
    def __init__(self, seen, library):
        self.me, self.seen, self.library = self, seen, library
    def __del__(self):
        self.seen.append(self.library.probe_is_collecting())
class Plain:
    def __del__(self):
        plain.append(probe.probe_is_collecting())
asked, begun_by_itself, without_the_gil, plain = [], [], [], []
Cycle(asked, probe)
gc.collect()
Cycle(without_the_gil, released)
gc.collect()
gc.set_threshold(10)
Cycle(begun_by_itself, probe)
kept = [[] for _ in range(10000)]
Plain()
assert (asked, begun_by_itself, without_the_gil, plain) == ([1], [1], [1], [0]), (asked, begun_by_itself, without_the_gil, plain)
def collect():
    Cycle(asked, probe)
    gc.collect()
    Cycle(without_the_gil, released)
    gc.collect()
thread = threading.Thread(target=collect)
thread.start()
thread.join()
assert (asked, without_the_gil) == ([1, 1], [1, 0]) and probe.probe_is_collecting() == 0
print('told')
";

#[test]
fn a_collection_of_cycles_is_told() {
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let mut command = Command::new(python);
            command.args(["-c", COLLECTING]).arg(common::probe());
            assert_eq!(common::run(&mut command), "told\n");
        });
    }
}

/// A child of `fork` has the parent's tables and goes on with them.
const FORK: &str = "
import ctypes, os, sys
probe = ctypes.PyDLL(sys.argv[1])
def ids(probe=probe):
    return [probe.probe_id(0) for _ in range(2)]
before = ids()
child = os.fork()
if child == 0:
    os._exit(0 if min(ids()) > 1 else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
assert min(before) > 1
print('forked')
";

#[test]
fn a_forked_child_goes_on() {
    for minor in [11, 12, 13] {
        each(minor, |python| {
            let text = common::run(Command::new(python).args(["-c", FORK]).arg(common::probe()));
            assert_eq!(text, "forked\n");
        });
    }
}
