//! The memory limit, and failures on demand.

use crate::library::*;

#[test]
fn beyond_the_limit_nothing_is_given_or_changed() {
    let test = "settings::beyond_the_limit_nothing_is_given_or_changed";
    isolated(test, &[("GPUMEM_SIM_MEMORY", "40MiB")], |driver| {
        driver.start();
        let first = driver.alloc(37 * MIB);
        let mut out = 7;
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 3 * MIB), OUT_OF_MEMORY);
        assert_eq!(driver.cuMemAllocAsync(&mut out, MIB, 0), OUT_OF_MEMORY);
        let here = MemoryProps::new(on(0));
        assert_eq!(
            driver.cuMemCreate(&mut out, 4 * MIB, &here, 0),
            OUT_OF_MEMORY
        );
        assert_eq!((out, driver.used()), (7, 38 * MIB));
        driver.alloc(2 * MIB);
        assert_eq!(driver.cuMemAlloc_v2(&mut out, 1), OUT_OF_MEMORY);
        assert_eq!(driver.cuMemFree_v2(first), SUCCESS);
        driver.alloc(38 * MIB);
        let truth = driver.truth();
        assert_eq!(truth["devices"][0]["peak_charged_bytes"], 40 * MIB);
        assert_eq!(truth["errors"]["cuMemAlloc_v2"]["2"], 2);
    });
}

#[test]
fn the_named_call_fails() {
    let fail = "cuMemAlloc_v2:2,cuMemFree_v2:1=700,cuMemAllocAsync_ptsz:1";
    isolated(
        "settings::the_named_call_fails",
        &[("GPUMEM_SIM_FAIL", fail)],
        |driver| {
            driver.start();
            let first = driver.alloc(MIB);
            let mut out = 7;
            assert_eq!(driver.cuMemAlloc_v2(&mut out, MIB), OUT_OF_MEMORY);
            assert_eq!(out, 7);
            driver.alloc(MIB);
            // Only the variant that was named.
            get(|out| driver.cuMemAllocAsync(out, MIB, 0));
            assert_eq!(driver.cuMemAllocAsync_ptsz(&mut out, MIB, 0), OUT_OF_MEMORY);
            assert_eq!(driver.cuMemFree_v2(first), 700);
            assert_eq!(driver.live("device").len(), 2);
            assert_eq!(driver.cuMemFree_v2(first), SUCCESS);
            let truth = driver.truth();
            assert_eq!(truth["calls"]["cuMemAlloc_v2"], 3);
            assert_eq!(truth["errors"]["cuMemFree_v2"]["700"], 1);
        },
    );
}

#[test]
fn small_copies_to_the_host_bring_zeros_on_demand() {
    let test = "settings::small_copies_to_the_host_bring_zeros_on_demand";
    isolated(test, &[("GPUMEM_SIM_SMALL_D2H", "4")], |driver| {
        driver.start();
        let memory = driver.alloc(64);
        assert_eq!(driver.cuMemsetD8_v2(memory, 7, 64), SUCCESS);
        let mut back = [1; 5];
        let to = back.as_mut_ptr();
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 4, 0), SUCCESS);
        assert_eq!(back, [0, 0, 0, 0, 1]);
        assert_eq!(driver.cuMemcpyDtoHAsync_v2(to, memory, 5, 0), SUCCESS);
        assert_eq!(back, [7; 5]);
        // What waits for itself is no count of a kernel's.
        assert_eq!(driver.cuMemcpyDtoH_v2(to, memory, 4), SUCCESS);
        assert_eq!(back, [7; 5]);
    });
}
