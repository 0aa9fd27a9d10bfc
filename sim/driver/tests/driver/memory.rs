//! Device, managed and host memory, copies and fills.

use std::ptr::null_mut;

use crate::library::*;

#[test]
fn a_free_must_name_a_live_allocation() {
    isolated(
        "memory::a_free_must_name_a_live_allocation",
        &[],
        |driver| {
            driver.start();
            let address = driver.alloc(3 * MIB);
            assert_eq!(driver.used(), 4 * MIB);
            assert_eq!(driver.cuMemFree_v2(address + 512), INVALID_VALUE);
            assert_eq!(driver.cuMemFreeHost(address), INVALID_VALUE);
            assert_eq!(driver.cuMemFree_v2(address), SUCCESS);
            assert_eq!(driver.cuMemFree_v2(address), INVALID_VALUE);
            assert_eq!(driver.cuMemFreeAsync(address, 0), INVALID_VALUE);
            assert_eq!(driver.cuMemFree_v2(0), SUCCESS);
            assert_eq!(driver.used(), 0);
        },
    );
}

#[test]
fn an_allocation_needs_a_size_and_somewhere_to_answer() {
    let test = "memory::an_allocation_needs_a_size_and_somewhere_to_answer";
    isolated(test, &[], |driver| {
        driver.start();
        let mut address = 7;
        assert_eq!(driver.cuMemAlloc_v2(null_mut(), MIB), INVALID_VALUE);
        assert_eq!(driver.cuMemAlloc_v2(&mut address, 0), INVALID_VALUE);
        assert_eq!(
            driver.cuMemAlloc_v2(&mut address, usize::MAX),
            OUT_OF_MEMORY
        );
        assert_eq!(get(|out| driver.cuMemAllocHost_v2(out, 0)), 0);
        assert_eq!(driver.cuMemHostAlloc(null_mut(), 1, 0), INVALID_VALUE);
        assert_eq!(driver.cuMemHostAlloc(&mut address, 1, 0x100), INVALID_VALUE);
        assert_eq!(
            driver.cuMemAllocManaged(&mut address, MIB, 3),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuMemGetInfo_v2(null_mut(), null_mut()),
            INVALID_VALUE
        );
        assert_eq!((address, driver.used()), (7, 0));
    });
}

#[test]
fn rows_of_a_pitched_allocation_are_apart() {
    isolated(
        "memory::rows_of_a_pitched_allocation_are_apart",
        &[],
        |driver| {
            driver.start();
            let (mut address, mut pitch) = (0, 0);
            let status = driver.cuMemAllocPitch_v2(&mut address, &mut pitch, 1000, 5000, 4);
            assert_eq!((status, pitch), (SUCCESS, 1024));
            assert_eq!(driver.live("device")[0]["size_bytes"], 1024 * 5000);
            let status = driver.cuMemAllocPitch_v2(&mut address, &mut pitch, 1000, 5000, 3);
            assert_eq!(status, INVALID_VALUE);
            let status = driver.cuMemAllocPitch_v2(&mut address, null_mut(), 1000, 5000, 4);
            assert_eq!(status, INVALID_VALUE);
        },
    );
}

#[test]
fn host_and_managed_memory_take_nothing_of_the_device() {
    let test = "memory::host_and_managed_memory_take_nothing_of_the_device";
    isolated(test, &[], |driver| {
        driver.start();
        let pinned = get(|out| driver.cuMemAllocHost_v2(out, 5000));
        let managed = get(|out| driver.cuMemAllocManaged(out, 3 * MIB, 1));
        let own = vec![0u8; 8192];
        let own_address = own.as_ptr() as u64;
        assert_eq!(driver.cuMemHostRegister_v2(own_address, 8192, 0), SUCCESS);
        assert_eq!(
            driver.cuMemHostRegister_v2(own_address + 4096, 1, 0),
            ALREADY_REGISTERED
        );
        assert_eq!(driver.used(), 0);
        let truth = driver.truth();
        assert_eq!(truth["host"]["pinned_bytes"], 5000);
        assert_eq!(truth["host"]["registered_bytes"], 8192);
        assert_eq!(driver.cuMemFree_v2(pinned), INVALID_VALUE);
        assert_eq!(driver.cuMemFreeHost(own_address), INVALID_VALUE);
        assert_eq!(
            driver.cuMemHostUnregister(own_address + 4096),
            INVALID_VALUE
        );
        assert_eq!(driver.cuMemHostUnregister(own_address), SUCCESS);
        assert_eq!(driver.cuMemHostUnregister(own_address), NOT_REGISTERED);
        assert_eq!(driver.cuMemFreeHost(pinned), SUCCESS);
        assert_eq!(driver.cuMemFreeHost(pinned), INVALID_VALUE);
        assert_eq!(driver.cuMemFree_v2(managed), SUCCESS);
    });
}

#[test]
fn copies_and_fills_are_real() {
    isolated("memory::copies_and_fills_are_real", &[], |driver| {
        driver.start();
        let first = driver.alloc(MIB);
        let second = driver.alloc(MIB);
        let sent: Vec<u8> = (0..=255).collect();
        let mut got = vec![7; 256];
        // Fresh memory is zero.
        assert_eq!(
            driver.cuMemcpyDtoH_v2(got.as_mut_ptr(), second, 256),
            SUCCESS
        );
        assert_eq!(got, vec![0; 256]);
        assert_eq!(
            driver.cuMemcpyHtoD_v2(first + 100, sent.as_ptr(), 256),
            SUCCESS
        );
        assert_eq!(
            driver.cuMemcpyDtoDAsync_v2_ptsz(second, first + 100, 256, 0),
            SUCCESS
        );
        assert_eq!(
            driver.cuMemcpy(got.as_mut_ptr() as u64, second, 256),
            SUCCESS
        );
        assert_eq!(got, sent);
        assert_eq!(driver.cuMemsetD16_v2(second, 0x0102, 2), SUCCESS);
        assert_eq!(
            driver.cuMemsetD32Async(second + 4, 0x0a0b_0c0d, 1, 0),
            SUCCESS
        );
        assert_eq!(driver.cuMemcpyDtoH_v2(got.as_mut_ptr(), second, 9), SUCCESS);
        assert_eq!(got[..9], [2, 1, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a, 8]);
        // All of it zero again, but for the first byte.
        assert_eq!(driver.cuMemsetD8_v2(first, 9, MIB), SUCCESS);
        assert_eq!(driver.cuMemsetD8_v2(first + 1, 0, MIB - 1), SUCCESS);
        let mut all = vec![1; MIB];
        assert_eq!(
            driver.cuMemcpyDtoH_v2(all.as_mut_ptr(), first, MIB),
            SUCCESS
        );
        assert_eq!(all[0], 9);
        assert!(all[1..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn a_copy_must_stay_within_an_allocation() {
    isolated(
        "memory::a_copy_must_stay_within_an_allocation",
        &[],
        |driver| {
            driver.start();
            let address = driver.alloc(1000);
            let mut host = vec![0; 2000];
            let pointer = host.as_mut_ptr();
            assert_eq!(driver.cuMemcpyDtoH_v2(pointer, address, 1000), SUCCESS);
            assert_eq!(
                driver.cuMemcpyDtoH_v2(pointer, address, 1001),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuMemcpyDtoH_v2(pointer, address + 999, 2),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuMemcpyHtoD_v2(address + 1, pointer, 1000),
                INVALID_VALUE
            );
            assert_eq!(driver.cuMemsetD8_v2(address, 0, 1001), INVALID_VALUE);
            assert_eq!(driver.cuMemsetD16_v2(address + 1, 0, 1), INVALID_VALUE);
            // Pageable memory is not the device's, and a copy needs one side that is.
            assert_eq!(driver.cuMemsetD8_v2(pointer as u64, 0, 1), INVALID_VALUE);
            assert_eq!(
                driver.cuMemcpy(pointer as u64, pointer as u64 + 1000, 8),
                INVALID_VALUE
            );
            assert_eq!(driver.cuMemFree_v2(address), SUCCESS);
            assert_eq!(driver.cuMemcpyDtoH_v2(pointer, address, 8), INVALID_VALUE);
            assert_eq!(driver.cuMemcpyDtoH_v2(pointer, address, 0), SUCCESS);
        },
    );
}

#[test]
fn an_address_can_be_asked_about() {
    isolated(
        "memory::an_address_can_be_asked_about",
        &[("GPUMEM_SIM_DEVICES", "2")],
        |driver| {
            driver.start();
            let context = get(|out| driver.cuCtxCreate_v2(out, 0, 1));
            let address = driver.alloc(5000);
            let pinned = get(|out| driver.cuMemAllocHost_v2(out, 4096));
            let ask = |attribute, address| {
                get(|out: &mut u64| driver.cuPointerGetAttribute(out, attribute, address))
            };
            assert_eq!(ask(1, address), context);
            assert_eq!((ask(2, address), ask(2, pinned)), (2, 1));
            assert_eq!(ask(9, address), 1);
            assert_eq!(
                (ask(11, address + 77), ask(12, address + 77)),
                (address, 5000)
            );
            let mut value = 7;
            assert_eq!(
                driver.cuPointerGetAttribute(&mut value, 1, 0x1000),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuPointerGetAttribute(null_mut(), 1, address),
                INVALID_VALUE
            );
            let (mut start, mut bytes) = (0, 0);
            let status = driver.cuMemGetAddressRange_v2(&mut start, &mut bytes, address + 4999);
            assert_eq!((status, start, bytes), (SUCCESS, address, 5000));
            let status = driver.cuMemGetAddressRange_v2(&mut start, null_mut(), address + 5000);
            assert_eq!(status, NOT_FOUND);
        },
    );
}
