//! Stream-ordered allocation, and a pool's two numbers.

use std::ptr::null_mut;

use crate::library::*;

const THRESHOLD: i32 = 4;
const RESERVED: i32 = 5;
const RESERVED_HIGH: i32 = 6;
const USED: i32 = 7;
const USED_HIGH: i32 = 8;

/// What a pool reserves at a time.
const CHUNK: u64 = 32 << 20;

impl Driver {
    fn pool(&self, pool: u64, attribute: i32) -> u64 {
        get(|out| self.cuMemPoolGetAttribute(pool, attribute, out))
    }
}

#[test]
fn a_pool_keeps_what_its_blocks_leave_until_a_wait() {
    let test = "pools::a_pool_keeps_what_its_blocks_leave_until_a_wait";
    isolated(test, &[], |driver| {
        driver.start();
        let pool = get(|out| driver.cuDeviceGetDefaultMemPool(out, 0));
        let small = get(|out| driver.cuMemAllocAsync(out, 1000, 0));
        let large = get(|out| driver.cuMemAllocAsync_ptsz(out, 5 * MIB, 0));
        let numbers = || (driver.pool(pool, USED), driver.pool(pool, RESERVED));
        assert_eq!(numbers(), (5 * MIB as u64 + 1000, CHUNK));
        let more = get(|out| driver.cuMemAllocAsync(out, 30 * MIB, 0));
        assert_eq!(numbers(), (35 * MIB as u64 + 1000, 2 * CHUNK));
        assert_eq!(driver.used() as u64, 2 * CHUNK);
        assert_eq!(driver.cuMemFreeAsync(more, 0), SUCCESS);
        assert_eq!(driver.cuMemFreeAsync(large, 0), SUCCESS);
        assert_eq!(numbers(), (1000, 2 * CHUNK));
        // What the pool holds serves the next block: nothing more is taken.
        let again = get(|out| driver.cuMemAllocAsync(out, 60 * MIB, 0));
        assert_eq!(driver.used() as u64, 2 * CHUNK);
        assert_eq!(driver.cuMemFreeAsync(again, 0), SUCCESS);
        assert_eq!(driver.cuStreamSynchronize(0), SUCCESS);
        assert_eq!(numbers(), (1000, CHUNK));
        assert_eq!(driver.cuMemFreeAsync(small, 0), SUCCESS);
        assert_eq!(driver.cuMemFreeAsync(small, 0), INVALID_VALUE);
        assert_eq!(driver.cuCtxSynchronize(), SUCCESS);
        assert_eq!((numbers(), driver.used()), ((0, 0), 0));
        assert_eq!(driver.pool(pool, USED_HIGH), 60 * MIB as u64 + 1000);
        assert_eq!(driver.pool(pool, RESERVED_HIGH), 2 * CHUNK);
        assert_eq!(
            driver.cuMemPoolSetAttribute(pool, USED_HIGH, &1),
            INVALID_VALUE
        );
        assert_eq!(driver.cuMemPoolSetAttribute(pool, USED_HIGH, &0), SUCCESS);
        assert_eq!(driver.pool(pool, USED_HIGH), 0);
    });
}

#[test]
fn a_threshold_keeps_memory_through_a_wait_but_not_a_trim() {
    let test = "pools::a_threshold_keeps_memory_through_a_wait_but_not_a_trim";
    isolated(test, &[], |driver| {
        driver.start();
        let pool = get(|out| driver.cuDeviceGetDefaultMemPool(out, 0));
        assert_eq!(
            driver.cuMemPoolSetAttribute(pool, THRESHOLD, &(40 << 20)),
            SUCCESS
        );
        assert_eq!(driver.pool(pool, THRESHOLD), 40 << 20);
        let block = get(|out| driver.cuMemAllocAsync(out, 100 * MIB, 0));
        assert_eq!(driver.cuMemFreeAsync(block, 0), SUCCESS);
        let event = get(|out| driver.cuEventCreate(out, 0));
        assert_eq!(driver.cuEventRecord(event, 0), SUCCESS);
        assert_eq!(driver.cuEventSynchronize(event), SUCCESS);
        assert_eq!(driver.pool(pool, RESERVED), 2 * CHUNK);
        assert_eq!(driver.cuMemPoolTrimTo(pool, 3 * MIB), SUCCESS);
        assert_eq!(driver.pool(pool, RESERVED), CHUNK);
        assert_eq!(driver.cuMemPoolTrimTo(pool, 0), SUCCESS);
        assert_eq!((driver.pool(pool, RESERVED), driver.used()), (0, 0));
    });
}

#[test]
fn either_free_takes_either_memory() {
    isolated("pools::either_free_takes_either_memory", &[], |driver| {
        driver.start();
        let pool = get(|out| driver.cuDeviceGetDefaultMemPool(out, 0));
        let plain = driver.alloc(MIB);
        let block = get(|out| driver.cuMemAllocAsync(out, MIB, 0));
        assert_eq!(driver.cuMemFreeAsync(plain, 0), SUCCESS);
        assert_eq!(driver.cuMemFree_v2(block), SUCCESS);
        // The second has waited.
        assert_eq!(driver.pool(pool, USED), 0);
        assert_eq!((driver.pool(pool, RESERVED), driver.used()), (0, 0));
        assert_eq!(driver.cuMemFree_v2(plain), INVALID_VALUE);
        assert_eq!(driver.cuMemFree_v2(block), INVALID_VALUE);
        assert_eq!(driver.cuCtxSynchronize(), SUCCESS);
        assert_eq!(driver.used(), 0);
    });
}

#[test]
fn live_blocks_keep_a_destroyed_pool() {
    isolated("pools::live_blocks_keep_a_destroyed_pool", &[], |driver| {
        driver.start();
        let pool = get(|out| driver.cuMemPoolCreate(out, &PoolProps::new(0, 0)));
        assert_eq!(driver.cuDeviceSetMemPool(0, pool), SUCCESS);
        let block = get(|out| driver.cuMemAllocAsync(out, MIB, 0));
        assert_eq!(driver.live("pool-block")[0]["pool"], pool);
        assert_eq!(driver.cuMemPoolDestroy(pool), SUCCESS);
        assert_eq!(driver.cuMemPoolDestroy(pool), INVALID_VALUE);
        assert_eq!(driver.used() as u64, CHUNK);
        let mut address = 0;
        let status = driver.cuMemAllocFromPoolAsync(&mut address, MIB, pool, 0);
        assert_eq!(status, INVALID_VALUE);
        // The device went back to its default pool, which cannot be destroyed.
        let default = get(|out| driver.cuDeviceGetMemPool(out, 0));
        assert_eq!(default, get(|out| driver.cuDeviceGetDefaultMemPool(out, 0)));
        assert_eq!(driver.cuMemPoolDestroy(default), INVALID_VALUE);
        assert_eq!(driver.cuMemFreeAsync(block, 0), SUCCESS);
        assert_eq!(driver.used(), 0);
        assert!(driver.live("pool").is_empty());
    });
}

#[test]
fn a_pool_has_limits_and_a_device() {
    isolated(
        "pools::a_pool_has_limits_and_a_device",
        &[("GPUMEM_SIM_DEVICES", "2")],
        |driver| {
            driver.start();
            let pool = get(|out| driver.cuMemPoolCreate(out, &PoolProps::new(1, 32 * MIB)));
            let mut address = 7;
            let mut from_pool =
                |bytes| driver.cuMemAllocFromPoolAsync(&mut address, bytes, pool, 0);
            assert_eq!(from_pool(33 * MIB), OUT_OF_MEMORY);
            assert_eq!(from_pool(4 * MIB), SUCCESS);
            assert_eq!(driver.truth()["devices"][1]["charged_bytes"], CHUNK);
            assert_eq!(driver.used(), 0);
            assert_eq!(driver.cuDeviceSetMemPool(0, pool), INVALID_VALUE);
            let status = driver.cuMemPoolCreate(&mut address, &PoolProps::new(2, 0));
            assert_eq!(status, INVALID_DEVICE);
            assert_eq!(
                driver.cuMemPoolCreate(null_mut(), &PoolProps::new(0, 0)),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuMemPoolCreate(&mut address, std::ptr::null()),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuMemPoolGetAttribute(pool, 99, &mut address),
                INVALID_VALUE
            );
            assert_eq!(
                driver.cuMemAllocAsync(&mut address, MIB, 0x1234),
                INVALID_HANDLE
            );
            assert_eq!(driver.cuMemAllocAsync(null_mut(), MIB, 0), INVALID_VALUE);
            // No bytes are at address zero, which may be freed.
            assert_eq!(get(|out| driver.cuMemAllocAsync(out, 0, 0)), 0);
            assert_eq!(driver.cuMemFreeAsync(0, 0), SUCCESS);
        },
    );
}
