//! Contexts: primary and created ones, stacks, and what goes with them.

use crate::library::*;

#[test]
fn a_primary_context_lives_until_its_last_release() {
    let test = "contexts::a_primary_context_lives_until_its_last_release";
    isolated(test, &[], |driver| {
        let context = driver.start();
        assert_eq!(get(|out| driver.cuDevicePrimaryCtxRetain(out, 0)), context);
        let address = driver.alloc(MIB);
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), SUCCESS);
        assert_eq!(driver.used(), 2 * MIB);
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), SUCCESS);
        // Still current here, but gone; and so is what it owned.
        assert_eq!(driver.cuMemFree_v2(address), CONTEXT_IS_DESTROYED);
        assert_eq!(driver.truth()["devices"][0]["charged_bytes"], 0);
        assert!(driver.live("device").is_empty());
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), INVALID_CONTEXT);
        let (mut flags, mut active) = (0, 7);
        assert_eq!(
            driver.cuDevicePrimaryCtxGetState(0, &mut flags, &mut active),
            SUCCESS
        );
        assert_eq!(active, 0);
    });
}

#[test]
fn a_reset_keeps_the_references() {
    isolated("contexts::a_reset_keeps_the_references", &[], |driver| {
        let context = driver.start();
        driver.alloc(MIB);
        assert_eq!(driver.cuDevicePrimaryCtxReset_v2(0), SUCCESS);
        assert!(driver.live("device").is_empty());
        let mut address = 0;
        assert_eq!(
            driver.cuMemAlloc_v2(&mut address, MIB),
            CONTEXT_IS_DESTROYED
        );
        assert_eq!(get(|out| driver.cuDevicePrimaryCtxRetain(out, 0)), context);
        driver.alloc(MIB);
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), SUCCESS);
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), SUCCESS);
        assert_eq!(driver.cuDevicePrimaryCtxRelease_v2(0), INVALID_CONTEXT);
    });
}

#[test]
fn a_destroyed_context_frees_what_it_owned_and_nothing_else() {
    let test = "contexts::a_destroyed_context_frees_what_it_owned_and_nothing_else";
    isolated(test, &[], |driver| {
        driver.start();
        let kept = driver.alloc(MIB);
        let context = get(|out| driver.cuCtxCreate_v2(out, 0, 0));
        assert_eq!(get(|out| driver.cuCtxGetCurrent(out)), context);
        driver.alloc(MIB);
        get(|out| driver.cuMemHostAlloc(out, 4096, 0));
        get(|out| driver.cuStreamCreate(out, 0));
        get(|out| driver.cuEventCreate(out, 0));
        let block = get(|out| driver.cuMemAllocAsync(out, 1000, 0));
        get(|out| driver.cuMemCreate(out, 2 * MIB, &MemoryProps::new(on(0)), 0));
        assert_eq!(driver.cuCtxDestroy_v2(context), SUCCESS);
        // It was taken off this thread's stack: the primary one is current.
        assert_eq!(get(|out| driver.cuCtxGetDevice(out)), 0);
        let left = driver.live("device");
        assert_eq!(left.len(), 1);
        assert_eq!(left[0]["address"], kept);
        for kind in ["pinned", "stream", "event"] {
            assert!(driver.live(kind).is_empty(), "{kind}");
        }
        // Pools and physical memory belong to the device.
        assert_eq!(driver.live("pool-block")[0]["address"], block);
        assert_eq!(driver.live("physical").len(), 1);
        assert_eq!(driver.cuCtxDestroy_v2(context), CONTEXT_IS_DESTROYED);
        assert_eq!(driver.cuCtxSetCurrent(context), CONTEXT_IS_DESTROYED);
        assert_eq!(driver.cuCtxDestroy_v2(0x1234), INVALID_CONTEXT);
    });
}

#[test]
fn a_stack_is_the_threads_own() {
    isolated("contexts::a_stack_is_the_threads_own", &[], |driver| {
        let primary = driver.start();
        assert_eq!(driver.cuCtxDestroy_v2(primary), INVALID_CONTEXT);
        let first = get(|out| driver.cuCtxCreate_v3(out, 0, 0, 0, 0));
        let second = get(|out| driver.cuCtxCreate_v4(out, 0, 0, 0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut address = 0;
                assert_eq!(get(|out| driver.cuCtxGetCurrent(out)), 0);
                assert_eq!(driver.cuMemAlloc_v2(&mut address, MIB), INVALID_CONTEXT);
                assert_eq!(driver.cuCtxPopCurrent_v2(&mut address), INVALID_CONTEXT);
                assert_eq!(driver.cuCtxPushCurrent_v2(first), SUCCESS);
                driver.alloc(MIB);
            });
        });
        assert_eq!(get(|out| driver.cuCtxPopCurrent_v2(out)), second);
        assert_eq!(driver.cuCtxPopCurrent_v2(std::ptr::null_mut()), SUCCESS);
        assert_eq!(get(|out| driver.cuCtxGetCurrent(out)), primary);
        assert_eq!(driver.cuCtxPushCurrent_v2(0x1234), INVALID_CONTEXT);
    });
}

#[test]
fn a_context_can_take_memory_of_its_own() {
    let environment = [
        ("GPUMEM_SIM_CONTEXT", "256MiB"),
        ("GPUMEM_SIM_MEMORY", "600MiB"),
    ];
    isolated(
        "contexts::a_context_can_take_memory_of_its_own",
        &environment,
        |driver| {
            driver.start();
            assert_eq!(driver.used(), 256 * MIB);
            let second = get(|out| driver.cuCtxCreate_v2(out, 0, 0));
            let mut third = 7;
            assert_eq!(driver.cuCtxCreate_v2(&mut third, 0, 0), OUT_OF_MEMORY);
            assert_eq!((third, driver.used()), (7, 512 * MIB));
            assert_eq!(driver.cuCtxDestroy_v2(second), SUCCESS);
            assert_eq!(driver.used(), 256 * MIB);
        },
    );
}

#[test]
fn limits_are_kept() {
    isolated("contexts::limits_are_kept", &[], |driver| {
        driver.start();
        assert_eq!(get(|out| driver.cuCtxGetLimit(out, 0)), 1024);
        assert_eq!(driver.cuCtxSetLimit(0, 4096), SUCCESS);
        assert_eq!(get(|out| driver.cuCtxGetLimit(out, 0)), 4096);
        let mut out = 0;
        assert_eq!(driver.cuCtxGetLimit(&mut out, 99), 215);
        assert_eq!(
            get(|out| driver.cuDeviceGetByPCIBusId(out, c"0000:10:00.0".as_ptr())),
            0
        );
    });
}
