//! A C program that is linked with the runtime's archive, as many programs are
//! with NVIDIA's, on the simulated driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// The archive that cargo has built for this test. It bears a hash, so that one
/// of other settings may lie beside it: the newest is ours.
fn archive() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let built = |path: &Path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libgpumem_sim_runtime_static-") && name.ends_with(".a")
    };
    let time = |path: &PathBuf| -> SystemTime { path.metadata().unwrap().modified().unwrap() };
    std::fs::read_dir(folder.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| built(path))
        .max_by_key(time)
        .expect("cargo builds the archive for this test")
}

#[test]
fn a_linked_program_runs_on_the_simulated_driver() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("runtime-archive-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    let compiled = Command::new("cc")
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/archive/program.c"
        ))
        .arg(archive())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{errors}");

    let driver = std::env::current_exe()
        .unwrap()
        .with_file_name("libgpumem_sim_driver.so");
    std::fs::copy(driver, folder.join("libcuda.so.1")).unwrap();
    let output = Command::new(&program)
        .env("LD_LIBRARY_PATH", &folder)
        .output()
        .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said, format!("13000 {} 0\n", 64 << 20));
}
