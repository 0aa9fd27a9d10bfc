//! What is tested: the release build of gpumem, its shim, the simulator's libraries and the demo job.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The packages whose artefacts a test may need.
const PACKAGES: [&str; 9] = [
    "gpumem",
    "gpumemshim",
    "gpumem-sim-driver",
    "gpumem-sim-runtime",
    "gpumem-sim-runtime12",
    "gpumem-sim-nvml",
    "gpumem-sim-stubs",
    "gpumem-demo-job",
    "gpumem-demo-plugin",
];

/// The command line tool.
pub fn gpumem() -> PathBuf {
    artefact("gpumem")
}

/// The shim.
pub fn shim() -> PathBuf {
    artefact("libgpumemshim.so")
}

/// The simulated driver.
pub fn sim_driver() -> PathBuf {
    artefact("libgpumem_sim_driver.so")
}

/// The leaking program of `gpumem demo`.
pub fn demo_job() -> PathBuf {
    artefact("gpumem-demo-job")
}

fn artefact(name: &str) -> PathBuf {
    let path = folder().join(name);
    assert!(path.is_file(), "{} was not built", path.display());
    path
}

/// Where all of them lie: `GPUMEM_TEST_ARTEFACTS` (an installed gpumem, say), else Cargo's release folder, brought up to date
/// once a process. Between processes Cargo's own lock keeps order.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| match env::var_os("GPUMEM_TEST_ARTEFACTS") {
        Some(named) => named.into(),
        None => build(),
    })
}

/// The folder of Cargo's build, such as `target`: a test lies in `target/debug/deps`.
pub(crate) fn target() -> PathBuf {
    let test = env::current_exe().expect("a test knows its own path");
    let target = test.ancestors().nth(3);
    target
        .expect("a test lies in target/PROFILE/deps")
        .to_owned()
}

fn build() -> PathBuf {
    let target = target();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--release", "--target-dir"])
        .arg(&target);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    let output = command.output().expect("cargo can be run");
    assert!(
        output.status.success(),
        "the release build failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    target.join("release")
}
