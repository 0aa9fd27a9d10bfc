//! The notes of a dry run.

use std::collections::BTreeMap;
use std::process::Command;

use libloading::Library;

use crate::library::*;

/// The file's lines: all but the last field, and the last.
fn lines(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .map(|line| line.rsplit_once('\t').unwrap())
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// The notes of this process, as they are in the file now.
fn notes() -> BTreeMap<String, String> {
    let path = std::env::var("GPUMEM_SIM_NOTES").unwrap();
    let path = path.replace("%p", &std::process::id().to_string());
    lines(&std::fs::read_to_string(path).unwrap())
}

#[test]
fn what_is_new_is_written_at_once() {
    let test = "notes::what_is_new_is_written_at_once";
    let folder = scratch("notes");
    let pattern = format!("{}/%p", folder.display());
    std::fs::create_dir(&folder).unwrap();
    let environment = [
        ("GPUMEM_SIM_NOTES", pattern.as_str()),
        ("GPUMEM_SIM_SMALL_D2H", "8"),
        ("GPUMEM_SIM_MEMORY", "40MiB"),
    ];
    isolated(test, &environment, |driver| {
        driver.start();
        let memory = driver.alloc(20 * MIB);
        let mut to = [1_u8; 17];
        let to = to.as_mut_ptr();
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 16, 0), SUCCESS);
        // No operator of PyTorch's runs here.
        assert_eq!(notes()["small_copy\tunknown\t1"], "0");
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 8, 0), SUCCESS);
        assert_eq!(driver.cuMemcpyDtoH_v2(to, memory, 4), SUCCESS);
        // Neither a number, nor a copy, nor one to the host.
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 17, 0), SUCCESS);
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 0, 0), SUCCESS);
        assert_eq!(driver.cuMemcpyHtoD_v2(memory, to, 4), SUCCESS);
        let mut out = 0;
        for _ in 0..2 {
            assert_eq!(driver.cuMemAlloc_v2(&mut out, 21 * MIB), OUT_OF_MEMORY);
        }
        let now = notes();
        assert_eq!(now["small_copy\tunknown\t3"], "1");
        assert_eq!(now["peak\t0"], (20 * MIB).to_string());
        assert_eq!(now["common_peak\t0"], (20 * MIB).to_string());
        assert_eq!(now["out_of_memory\t0"], "2");
        assert!(!now.keys().any(|key| key.starts_with("unimplemented")));
        assert_eq!(driver.cuTexRefCreate(), NOT_SUPPORTED);
        assert_eq!(notes()["unimplemented\tcuTexRefCreate"], "1");
        let mut table = 0;
        driver.cuGetExportTable(&mut table, [0; 16].as_ptr());
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 21 * MIB), OUT_OF_MEMORY);
        assert_eq!(notes()["unimplemented\tcuGetExportTable"], "1");
    });
    // With what the process has written once more at its exit.
    std::fs::remove_dir_all(folder).unwrap();
}

/// The library of `operators.c`.
fn operators() -> Library {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/driver/operators.c");
    let built = scratch("operators.so");
    let output = Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-O1",
            "-fasynchronous-unwind-tables",
            "-o",
        ])
        .args([built.as_os_str(), source.as_ref()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    // SAFETY: the library runs no code when it is loaded.
    let library = unsafe { Library::new(&built) }.unwrap();
    std::fs::remove_file(built).unwrap();
    library
}

#[test]
fn who_reads_numbers_is_named() {
    let test = "notes::who_reads_numbers_is_named";
    let path = scratch("notes-of-operators");
    let environment = [
        ("GPUMEM_SIM_NOTES", path.to_str().unwrap()),
        ("GPUMEM_SIM_SMALL_D2H", "4"),
    ];
    isolated(test, &environment, |driver| {
        driver.start();
        let memory = driver.alloc(MIB);
        let operators = operators();
        let copy = driver.export("cuMemcpyDtoHAsync_v2");
        let run = |symbol: &str| {
            let mut to = 0_u64;
            // SAFETY: the functions have this signature, and the copy's own is
            // the one that they call it by.
            unsafe {
                let function = operators
                    .get::<unsafe extern "C" fn(u64, *mut u64, u64) -> i32>(symbol.as_bytes());
                function.unwrap()(copy, &mut to, memory)
            }
        };
        for _ in 0..3 {
            assert_eq!(run("_ZN2at6native16nonzero_out_cudaERKNS_6TensorE"), 2);
        }
        assert_eq!(
            run("_ZN2at6native20unique_cuda_templateIfEEvRKNS_6TensorE"),
            3
        );
        assert_eq!(run("_ZN2at4_ops4item4callERKNS_6TensorE"), 2);
    });
    // In the process of the body the name is another, and nothing is there yet.
    let Ok(text) = std::fs::read_to_string(&path) else {
        return assert!(std::env::var_os("GPUMEM_SIM_TEST_CHILD").is_some());
    };
    std::fs::remove_file(&path).unwrap();
    let found = lines(&text);
    assert_eq!(found["small_copy\tat::native::nonzero_out_cuda\t3"], "3");
    assert_eq!(
        found["small_copy\tat::native::unique_cuda_template\t1"],
        "0"
    );
    let item = "small_copy\tat::native::_local_scalar_dense_cuda\t1";
    assert_eq!(found[item], "0");
}

#[test]
fn they_hold_at_exit() {
    let test = "notes::they_hold_at_exit";
    let path = scratch("notes-at-exit");
    if std::env::var_os("GPUMEM_SIM_TEST_CHILD").is_some() {
        return isolated(test, &[], |driver| {
            driver.start();
            driver.alloc(3 * MIB);
            for _ in 0..5 {
                driver.cuTexRefCreate();
            }
            driver.alloc(3 * MIB);
            std::process::exit(42);
        });
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .envs([("GPUMEM_SIM_TEST_CHILD", "1")])
        .env("GPUMEM_SIM_NOTES", &path)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(42), "{output:?}");
    let found = lines(&std::fs::read_to_string(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(found["peak\t0"], (8 * MIB).to_string());
    assert_eq!(found["unimplemented\tcuTexRefCreate"], "5");
}

#[test]
fn a_place_that_cannot_be_written_harms_nothing() {
    let test = "notes::a_place_that_cannot_be_written_harms_nothing";
    isolated(test, &[("GPUMEM_SIM_NOTES", "/nowhere/notes")], |driver| {
        driver.start();
        driver.alloc(MIB);
        assert_eq!(driver.cuTexRefCreate(), NOT_SUPPORTED);
    });
}
