//! Virtual memory management: references, mappings, and what is refused.

use std::ptr::null_mut;

use crate::library::*;

/// One granule.
const G: usize = 2 * MIB;

const READ_WRITE: Access = Access {
    location: on(0),
    flags: 3,
};

impl Driver {
    fn physical(&self, bytes: usize) -> u64 {
        get(|out| self.cuMemCreate(out, bytes, &MemoryProps::new(on(0)), 0))
    }

    fn reserve(&self, bytes: usize) -> u64 {
        get(|out| self.cuMemAddressReserve(out, bytes, 0, 0, 0))
    }

    fn map(&self, address: u64, bytes: usize, handle: u64) -> i32 {
        self.cuMemMap(address, bytes, 0, handle, 0)
    }
}

#[test]
fn bytes_live_until_references_and_mappings_are_gone() {
    let test = "vmm::bytes_live_until_references_and_mappings_are_gone";
    isolated(test, &[], |driver| {
        driver.start();
        let range = driver.reserve(4 * G);
        assert_eq!(driver.used(), 0);
        let handle = driver.physical(G);
        assert_eq!(driver.map(range, G, handle), SUCCESS);
        assert_eq!(driver.map(range + 2 * G as u64, G, handle), SUCCESS);
        assert_eq!(driver.used(), G);
        // Released while it is mapped: the handle is gone, the bytes are not.
        assert_eq!(driver.cuMemRelease(handle), SUCCESS);
        assert_eq!(driver.cuMemRelease(handle), INVALID_VALUE);
        assert_eq!(driver.map(range + G as u64, G, handle), INVALID_VALUE);
        assert_eq!(driver.used(), G);
        assert_eq!(driver.cuMemUnmap(range, G), SUCCESS);
        // A reference can be had again from an address.
        let again = get(|out| driver.cuMemRetainAllocationHandle(out, range + 2 * G as u64 + 5));
        assert_eq!(again, handle);
        assert_eq!(driver.cuMemUnmap(range + 2 * G as u64, G), SUCCESS);
        assert_eq!(driver.used(), G);
        assert_eq!(driver.cuMemRelease(again), SUCCESS);
        assert_eq!(driver.used(), 0);
        assert!(driver.live("physical").is_empty());
        assert_eq!(driver.cuMemAddressFree(range, 4 * G), SUCCESS);
        assert!(driver.live("reservation").is_empty());
    });
}

#[test]
fn unmap_takes_whole_mappings() {
    isolated("vmm::unmap_takes_whole_mappings", &[], |driver| {
        driver.start();
        let range = driver.reserve(4 * G);
        let handle = driver.physical(2 * G);
        assert_eq!(driver.map(range, 2 * G, handle), SUCCESS);
        assert_eq!(driver.cuMemUnmap(range, G), INVALID_VALUE);
        assert_eq!(driver.cuMemUnmap(range + G as u64, G), INVALID_VALUE);
        assert_eq!(driver.cuMemUnmap(range, 3 * G), INVALID_VALUE);
        assert_eq!(driver.cuMemUnmap(range + 3 * G as u64, G), INVALID_VALUE);
        assert_eq!(driver.cuMemUnmap(range, 0), INVALID_VALUE);
        let second = driver.physical(G);
        assert_eq!(driver.map(range + 2 * G as u64, G, second), SUCCESS);
        // Two mappings, side by side, go together.
        assert_eq!(driver.cuMemUnmap(range, 3 * G), SUCCESS);
        assert_eq!(driver.cuMemUnmap(range, 3 * G), INVALID_VALUE);
    });
}

#[test]
fn map_needs_reserved_addresses_that_are_free() {
    isolated(
        "vmm::map_needs_reserved_addresses_that_are_free",
        &[],
        |driver| {
            driver.start();
            let range = driver.reserve(2 * G);
            let handle = driver.physical(G);
            assert_eq!(driver.map(range, G, handle), SUCCESS);
            assert_eq!(driver.map(range, G, handle), INVALID_VALUE);
            assert_eq!(driver.map(range + G as u64, 2 * G, handle), INVALID_VALUE);
            assert_eq!(driver.map(range + 4096, G, handle), INVALID_VALUE);
            assert_eq!(driver.map(range + G as u64, 4096, handle), INVALID_VALUE);
            assert_eq!(driver.map(range + G as u64, G, 0x1234), INVALID_VALUE);
            assert_eq!(driver.map(range + 8 * G as u64, G, handle), INVALID_VALUE);
            let longer = driver.physical(2 * G);
            assert_eq!(driver.map(range + G as u64, G, longer), NOT_SUPPORTED);
            assert_eq!(driver.cuMemRelease(longer), SUCCESS);
            assert_eq!(
                driver.cuMemMap(range + G as u64, G, G, handle, 0),
                NOT_SUPPORTED
            );
            let plain = driver.alloc(G);
            assert_eq!(driver.map(plain, G, handle), INVALID_VALUE);
            assert_eq!(driver.live("mapping").len(), 1);
            assert_eq!(driver.live("physical")[0]["mappings"], 1);
        },
    );
}

#[test]
fn only_an_empty_reservation_can_be_freed() {
    isolated(
        "vmm::only_an_empty_reservation_can_be_freed",
        &[],
        |driver| {
            driver.start();
            let range = driver.reserve(2 * G);
            let handle = driver.physical(G);
            assert_eq!(driver.map(range + G as u64, G, handle), SUCCESS);
            assert_eq!(driver.cuMemAddressFree(range, 2 * G), INVALID_VALUE);
            assert_eq!(driver.cuMemUnmap(range + G as u64, G), SUCCESS);
            assert_eq!(driver.cuMemAddressFree(range, G), INVALID_VALUE);
            assert_eq!(driver.cuMemAddressFree(range + G as u64, G), INVALID_VALUE);
            let plain = driver.alloc(G);
            assert_eq!(driver.cuMemAddressFree(plain, G), INVALID_VALUE);
            assert_eq!(driver.cuMemFree_v2(range), INVALID_VALUE);
            assert_eq!(driver.cuMemAddressFree(range, 2 * G), SUCCESS);
            assert_eq!(driver.cuMemAddressFree(range, 2 * G), INVALID_VALUE);
        },
    );
}

#[test]
fn sizes_and_places_are_checked() {
    isolated("vmm::sizes_and_places_are_checked", &[], |driver| {
        driver.start();
        let here = MemoryProps::new(on(0));
        assert_eq!(
            get(|out| driver.cuMemGetAllocationGranularity(out, &here, 0)),
            G
        );
        let mut out = 7;
        assert_eq!(
            driver.cuMemCreate(&mut out, G + 4096, &here, 0),
            INVALID_VALUE
        );
        assert_eq!(driver.cuMemCreate(&mut out, 0, &here, 0), INVALID_VALUE);
        assert_eq!(driver.cuMemCreate(null_mut(), G, &here, 0), INVALID_VALUE);
        assert_eq!(
            driver.cuMemCreate(&mut out, G, std::ptr::null(), 0),
            INVALID_VALUE
        );
        let nowhere = MemoryProps::new(on(4));
        assert_eq!(driver.cuMemCreate(&mut out, G, &nowhere, 0), INVALID_DEVICE);
        let strange = MemoryProps::new(Location { kind: 77, id: 0 });
        assert_eq!(driver.cuMemCreate(&mut out, G, &strange, 0), INVALID_VALUE);
        assert_eq!(
            driver.cuMemAddressReserve(&mut out, 4096, 0, 0, 0),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuMemAddressReserve(&mut out, G, 3, 0, 0),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuMemAddressReserve(null_mut(), G, 0, 0, 0),
            INVALID_VALUE
        );
        assert_eq!((out, driver.used()), (7, 0));
        // Memory of the host takes nothing of the device.
        get(|out| driver.cuMemCreate(out, G, &MemoryProps::new(Location { kind: 2, id: 0 }), 0));
        assert_eq!(driver.used(), 0);
        assert!(driver.live("physical")[0]["device"].is_null());
    });
}

#[test]
fn two_mappings_show_the_same_bytes() {
    isolated("vmm::two_mappings_show_the_same_bytes", &[], |driver| {
        driver.start();
        let range = driver.reserve(2 * G);
        let other = range + G as u64;
        let handle = driver.physical(G);
        assert_eq!(driver.map(range, G, handle), SUCCESS);
        assert_eq!(driver.map(other, G, handle), SUCCESS);
        // No access yet.
        assert_eq!(driver.cuMemsetD8_v2(range, 5, 16), INVALID_VALUE);
        assert_eq!(
            driver.cuMemSetAccess(range, G / 2, &READ_WRITE, 1),
            INVALID_VALUE
        );
        assert_eq!(
            driver.cuMemSetAccess(range, G, &READ_WRITE, 0),
            INVALID_VALUE
        );
        assert_eq!(driver.cuMemSetAccess(range, 2 * G, &READ_WRITE, 1), SUCCESS);
        assert_eq!(driver.cuMemsetD8_v2(range, 5, 16), SUCCESS);
        let mut got = [0; 16];
        assert_eq!(driver.cuMemcpyDtoH_v2(got.as_mut_ptr(), other, 16), SUCCESS);
        assert_eq!(got, [5; 16]);
        // A range over both mappings is one range; beyond them it is not.
        assert_eq!(driver.cuMemsetD8_v2(other - 8, 6, 16), SUCCESS);
        assert_eq!(
            driver.cuMemsetD8_v2(other + G as u64 - 8, 6, 16),
            INVALID_VALUE
        );
        // Other physical memory has bytes of its own.
        let elsewhere = driver.reserve(G);
        let another = driver.physical(G);
        assert_eq!(driver.map(elsewhere, G, another), SUCCESS);
        assert_eq!(driver.cuMemSetAccess(elsewhere, G, &READ_WRITE, 1), SUCCESS);
        assert_eq!(driver.cuMemsetD8_v2(elsewhere, 7, 16), SUCCESS);
        assert_eq!(driver.cuMemcpyDtoH_v2(got.as_mut_ptr(), range, 16), SUCCESS);
        assert_eq!((&got[..8], &got[8..]), (&[6; 8][..], &[5; 8][..]));
        // New physical memory is zero, whatever lay there before.
        assert_eq!(driver.cuMemUnmap(range, 2 * G), SUCCESS);
        assert_eq!(driver.cuMemRelease(handle), SUCCESS);
        let fresh = driver.physical(G);
        assert_eq!(driver.map(range, G, fresh), SUCCESS);
        assert_eq!(driver.cuMemSetAccess(range, G, &READ_WRITE, 1), SUCCESS);
        assert_eq!(driver.cuMemcpyDtoH_v2(got.as_mut_ptr(), range, 16), SUCCESS);
        assert_eq!(got, [0; 16]);
    });
}
