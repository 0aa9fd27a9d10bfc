//! The demo on the simulated driver: it leaks what it says, and nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A folder with the program, its plugin and the simulated driver, as they lie
/// together when they are installed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        // Cargo has built the libraries into the folder of this test.
        let test = std::env::current_exe().unwrap();
        let built = |file: &str| test.with_file_name(file);
        for (from, to) in [
            (
                PathBuf::from(env!("CARGO_BIN_EXE_gpumem-demo-job")),
                "gpumem-demo-job",
            ),
            (
                built("libgpumem_demo_plugin.so"),
                "libgpumem_demo_plugin.so",
            ),
            (built("libgpumem_sim_driver.so"), "libcuda.so.1"),
        ] {
            std::fs::copy(&from, folder.join(to)).unwrap();
        }
        Self(folder)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.0.join("gpumem-demo-job"));
        command
            .env("LD_LIBRARY_PATH", &self.0)
            .args(["--steps", "12", "--pause", "0"]);
        command
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays behind lies in cargo's own folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn it_leaks_what_it_says_and_nothing_else() {
    let folder = Folder::new("leak");
    let driver_truth = folder.0.join("truth.json");
    let mut command = folder.command();
    let output = command
        .arg("--truth")
        .env("GPUMEM_SIM_TRUTH", &driver_truth)
        .output()
        .unwrap();
    let (stdout, stderr) = text(&output);
    assert!(output.status.success(), "{stderr}");
    let said: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(said["steps"], 12);
    assert_eq!(said["leak_function"], "cache_request_result");

    // The line is that of the call, in the file that is named.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cache.rs");
    assert!(
        said["leak_file"]
            .as_str()
            .unwrap()
            .ends_with("sim/demo-job/src/cache.rs")
    );
    let source = std::fs::read_to_string(source).unwrap();
    let line = said["leak_line"].as_u64().unwrap() as usize;
    assert!(
        source
            .lines()
            .nth(line - 1)
            .unwrap()
            .contains("(driver.allocate)(")
    );

    let truth: Value =
        serde_json::from_str(&std::fs::read_to_string(driver_truth).unwrap()).unwrap();
    assert_eq!(truth["errors"], serde_json::json!({}));
    let live = truth["live"].as_array().unwrap();
    let leaked: Vec<_> = live
        .iter()
        .filter(|object| object["kind"] == "device")
        .collect();
    assert_eq!(leaked.len(), 12);
    assert!(
        leaked
            .iter()
            .all(|object| object["size_bytes"] == said["leak_bytes_per_step"])
    );
    // Beside them only the context, which a program leaves to its end.
    assert_eq!(live.len(), 13);
    // Each of the three ways was taken.
    for name in [
        "cuMemHostAlloc",
        "cuMemsetD8_v2",
        "cuMemAllocAsync",
        "cuMemMap",
    ] {
        assert!(truth["calls"][name].as_u64() >= Some(8), "{name}");
    }
}

#[test]
fn it_says_what_is_wrong() {
    let folder = Folder::new("wrong");
    let output = folder
        .command()
        .env("GPUMEM_SIM_MEMORY", "150MiB")
        .output()
        .unwrap();
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("out of memory"), "{stderr}");

    std::fs::remove_file(folder.0.join("libgpumem_demo_plugin.so")).unwrap();
    let output = folder.command().output().unwrap();
    let (_, stderr) = text(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr.contains("the plugin is missing"), "{stderr}");

    let output = folder.command().arg("--nonsense").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
