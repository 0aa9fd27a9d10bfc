//! What `tests/fetch.sh` brought (NVIDIA's CUDA runtimes and driver library) and what `tests/torch-env.sh` made. Without it a
//! test is skipped, and says so.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::artefacts;

/// A CUDA runtime, by its major version.
pub struct Runtime {
    /// 12 or 13.
    pub major: u32,
    /// `libcudart.so.N`.
    pub shared: PathBuf,
    /// `libcudart_static.a`.
    pub archive: PathBuf,
}

/// The folder that `fetch.sh` fills: `GPUMEM_TEST_DEPS`, else `target/test-deps`.
fn folder() -> PathBuf {
    env::var_os("GPUMEM_TEST_DEPS")
        .map_or_else(|| artefacts::target().join("test-deps"), PathBuf::from)
}

/// The runtime of a major version, 12 or 13.
pub fn runtime(major: u32) -> Option<Runtime> {
    // The wheels of version 13 and later have another layout than those before.
    let libraries = folder()
        .join(format!("cudart{major}/nvidia"))
        .join(match major {
            12 => "cuda_runtime/lib".to_owned(),
            _ => format!("cu{major}/lib"),
        });
    let runtime = Runtime {
        major,
        shared: libraries.join(format!("libcudart.so.{major}")),
        archive: libraries.join("libcudart_static.a"),
    };
    let there = runtime.shared.is_file() && runtime.archive.is_file();
    needed(
        there.then_some(runtime),
        &format!("no CUDA runtime {major}: run tests/fetch.sh"),
    )
}

/// NVIDIA's own `libcuda.so.1`. Without a GPU it loads, answers look-ups, and refuses to start.
pub fn real_driver() -> Option<PathBuf> {
    let libraries = folder().join("libcuda1/usr/lib");
    let found = std::fs::read_dir(libraries)
        .ok()
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("nvidia/current/libcuda.so.1")))
        .find(|path| path.is_file());
    needed(found, "no driver library of NVIDIA's: run tests/fetch.sh")
}

/// PyTorch in an environment of its own, where the simulated libraries bear NVIDIA's names.
pub struct Torch(PathBuf);

impl Torch {
    /// What `torch-env.sh` made.
    pub fn folder(&self) -> &Path {
        &self.0
    }

    /// The interpreter that has PyTorch.
    pub fn python(&self) -> PathBuf {
        self.0.join("venv/bin/python")
    }
}

/// The environment of `tests/torch-env.sh`: `GPUMEM_TEST_TORCH`, else `target/torch-env`.
pub fn torch() -> Option<Torch> {
    let folder = env::var_os("GPUMEM_TEST_TORCH")
        .map_or_else(|| artefacts::target().join("torch-env"), PathBuf::from);
    let torch = Torch(folder);
    let there = torch.python().is_file();
    needed(there.then_some(torch), "no PyTorch: run tests/torch-env.sh")
}

/// What a test needs, or `None` after saying that it is skipped. Where `GPUMEM_TEST_REQUIRE=1`, a lack is a failure.
pub fn needed<T>(found: Option<T>, what: &str) -> Option<T> {
    if found.is_none() {
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        assert!(
            env::var_os("GPUMEM_TEST_REQUIRE").is_none_or(|value| value != "1"),
            "{what}; GPUMEM_TEST_REQUIRE=1 allows no test to be skipped"
        );
        // Straight to the stream: what a passing test prints is not shown.
        let _ = writeln!(std::io::stderr(), "skipped: {test}: {what}");
    }
    found
}
