//! `cuGetProcAddress`: names, versions, variants.

use std::ffi::CString;
use std::ptr::null_mut;

use crate::library::*;

const PER_THREAD: u64 = 2;

impl Driver {
    /// Result, status and address.
    fn look_up(&self, name: &str, version: i32, flags: u64) -> (i32, i32, u64) {
        let name = CString::new(name).unwrap();
        let (mut status, mut address) = (7, 7);
        let result =
            self.cuGetProcAddress_v2(name.as_ptr(), &mut address, version, flags, &mut status);
        (result, status, address)
    }

    fn found(&self, name: &str, version: i32, flags: u64) -> u64 {
        let (result, status, address) = self.look_up(name, version, flags);
        assert_eq!((result, status), (SUCCESS, 0), "{name} at {version}");
        address
    }
}

#[test]
fn the_answer_is_the_exported_function() {
    isolated(
        "proc_address::the_answer_is_the_exported_function",
        &[],
        |driver| {
            for (name, version, flags, symbol) in [
                ("cuInit", 2000, 0, "cuInit"),
                ("cuMemAlloc", 3020, 0, "cuMemAlloc_v2"),
                ("cuMemAlloc", 13_000, PER_THREAD, "cuMemAlloc_v2"),
                ("cuMemAlloc", 3010, 0, "cuMemAlloc"),
                ("cuMemAllocAsync", 11_020, 0, "cuMemAllocAsync"),
                ("cuMemAllocAsync", 11_020, 1, "cuMemAllocAsync"),
                (
                    "cuMemAllocAsync",
                    11_020,
                    PER_THREAD,
                    "cuMemAllocAsync_ptsz",
                ),
                ("cuMemcpyHtoD", 7000, PER_THREAD, "cuMemcpyHtoD_v2_ptds"),
                ("cuCtxCreate", 12_040, 0, "cuCtxCreate_v3"),
                ("cuCtxCreate", 12_050, 0, "cuCtxCreate_v4"),
                ("cuGraphInstantiate", 11_000, 0, "cuGraphInstantiate_v2"),
                (
                    "cuStreamGetCaptureInfo",
                    11_030,
                    PER_THREAD,
                    "cuStreamGetCaptureInfo_v2_ptsz",
                ),
            ] {
                let exported = driver.export(symbol);
                assert_ne!(exported, 0, "{symbol}");
                assert_eq!(
                    driver.found(name, version, flags),
                    exported,
                    "{name} at {version}"
                );
            }
            // Legacy and per-thread variants are different functions.
            assert_ne!(
                driver.export("cuMemAllocAsync"),
                driver.export("cuMemAllocAsync_ptsz")
            );
            assert_ne!(
                driver.export("cuMemFreeAsync"),
                driver.export("cuMemFreeAsync_ptsz")
            );
        },
    );
}

#[test]
fn it_finds_itself_at_both_signatures() {
    isolated(
        "proc_address::it_finds_itself_at_both_signatures",
        &[],
        |driver| {
            let first = driver.found("cuGetProcAddress", 11_030, 0);
            let second = driver.found("cuGetProcAddress", 12_000, 0);
            assert_eq!(first, driver.export("cuGetProcAddress"));
            assert_eq!(second, driver.export("cuGetProcAddress_v2"));
            assert_ne!(first, second);
            // The first has four parameters, and no use for a fifth.
            let name = CString::new("cuMemFree").unwrap();
            let address = get(|out| driver.cuGetProcAddress(name.as_ptr(), out, 12_000, 0));
            assert_eq!(address, driver.export("cuMemFree_v2"));
        },
    );
}

#[test]
fn what_is_missing_is_told_apart() {
    isolated(
        "proc_address::what_is_missing_is_told_apart",
        &[],
        |driver| {
            assert_eq!(driver.look_up("cuNothing", 13_000, 0), (SUCCESS, 1, 0));
            assert_eq!(driver.look_up("", 0, 0), (SUCCESS, 1, 0));
            assert_eq!(
                driver.look_up("cuMemAllocAsync", 11_010, 0),
                (SUCCESS, 2, 0)
            );
            assert_eq!(driver.look_up("cuInit", 13_000, 9), (INVALID_VALUE, 7, 7));
            // The per-thread variant is younger than the function.
            assert_eq!(
                driver.look_up("cuMemcpyHtoD", 3020, PER_THREAD),
                (SUCCESS, 2, 0)
            );
            // The first version has only the error to say it.
            let name = CString::new("cuNothing").unwrap();
            let mut address = 7;
            let result = driver.cuGetProcAddress(name.as_ptr(), &mut address, 13_000, 0);
            assert_eq!((result, address), (NOT_FOUND, 7));
            let name = CString::new("cuInit").unwrap();
            // A NULL status is what runtimes give.
            let result =
                driver.cuGetProcAddress_v2(name.as_ptr(), &mut address, 2000, 0, null_mut());
            assert_eq!((result, address), (SUCCESS, driver.export("cuInit")));
            let result = driver.cuGetProcAddress_v2(name.as_ptr(), null_mut(), 2000, 0, null_mut());
            assert_eq!(result, INVALID_VALUE);
            let result =
                driver.cuGetProcAddress_v2(std::ptr::null(), &mut address, 2000, 0, null_mut());
            assert_eq!(result, INVALID_VALUE);
        },
    );
}

#[test]
fn what_is_not_simulated_is_found_too() {
    isolated(
        "proc_address::what_is_not_simulated_is_found_too",
        &[],
        |driver| {
            for name in [
                "cuTexRefCreate",
                "cuGraphAddNode",
                "cuArrayCreate",
                "cuGLInit",
            ] {
                driver.found(name, 13_000, 0);
            }
            assert_eq!(
                driver.found("cuGetExportTable", 3000, 0),
                driver.export("cuGetExportTable")
            );
        },
    );
}
