//! Copies of memory that was never written cost the host nothing.

use crate::library::*;

const GIB: usize = 1 << 30;

/// Memory of this process that is in use.
fn resident_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split_whitespace().nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Device memory by physical memory, in two mappings side by side.
fn two_mappings(driver: &Driver, bytes: usize) -> u64 {
    let address = get(|out| driver.cuMemAddressReserve(out, bytes, 0, 0, 0));
    let half = bytes / 2;
    // The second half first, so that the offsets are not in the addresses' order.
    for start in [address + half as u64, address] {
        let handle = get(|out| driver.cuMemCreate(out, half, &MemoryProps::new(on(0)), 0));
        assert_eq!(driver.cuMemMap(start, half, 0, handle, 0), SUCCESS);
    }
    let wish = Access {
        location: on(0),
        flags: 3,
    };
    assert_eq!(driver.cuMemSetAccess(address, bytes, &wish, 1), SUCCESS);
    address
}

/// The byte at an address.
fn byte(driver: &Driver, address: u64) -> u8 {
    let mut byte = 0xee;
    assert_eq!(driver.cuMemcpyDtoH_v2(&mut byte, address, 1), SUCCESS);
    byte
}

#[test]
fn a_clone_of_untouched_memory_costs_nothing() {
    let test = "sparse::a_clone_of_untouched_memory_costs_nothing";
    isolated(test, &[("GPUMEM_SIM_MEMORY", "32GiB")], |driver| {
        driver.start();
        let makers: [fn(&Driver) -> u64; 3] = [
            |driver| driver.alloc(GIB),
            |driver| get(|out| driver.cuMemAllocAsync(out, GIB, 0)),
            |driver| two_mappings(driver, GIB),
        ];
        for make in makers {
            for make_other in makers {
                let (from, to) = (make(driver), make_other(driver));
                // One page of data on either side of the middle, and old data
                // where the source has none.
                let places = [GIB as u64 / 2 - 100, GIB as u64 / 2 + 200_000];
                for place in places {
                    assert_eq!(driver.cuMemsetD8_v2(from + place, 7, 150), SUCCESS);
                }
                assert_eq!(driver.cuMemsetD8_v2(to + 5000, 9, 1_000_000), SUCCESS);
                let before = resident_bytes();
                let copied = driver.cuMemcpyDtoDAsync_v2_ptsz(to + 512, from, GIB - 512, 0);
                assert_eq!(copied, SUCCESS);
                let grown = resident_bytes().saturating_sub(before);
                assert!(grown < 64 * MIB, "{grown}");

                for place in places {
                    let there = to + 512 + place;
                    let found = [-1, 0, 149, 150]
                        .map(|offset| byte(driver, there.wrapping_add_signed(offset)));
                    assert_eq!(found, [0, 7, 7, 0]);
                }
                for offset in [5000, 8191, 8192, 500_000, 1_004_999] {
                    assert_eq!(byte(driver, to + offset), 0, "old data at {offset}");
                }
            }
        }
    });
}

#[test]
fn untouched_memory_reaches_the_host_as_zeros() {
    let test = "sparse::untouched_memory_reaches_the_host_as_zeros";
    isolated(test, &[], |driver| {
        driver.start();
        let from = driver.alloc(MIB);
        assert_eq!(driver.cuMemsetD8_v2(from + 70_000, 7, 1), SUCCESS);
        let mut host = vec![0xee; MIB];
        assert_eq!(
            driver.cuMemcpyDtoH_v2(host.as_mut_ptr(), from, MIB),
            SUCCESS
        );
        let mut wanted = vec![0; MIB];
        wanted[70_000] = 7;
        assert!(host == wanted);
        let pinned = get(|out| driver.cuMemAllocHost_v2(out, MIB));
        assert_eq!(driver.cuMemcpy(pinned, from, MIB), SUCCESS);
        assert_eq!(byte(driver, from + 70_000), 7);
    });
}

#[test]
fn ranges_that_overlap_are_copied_as_they_were() {
    let test = "sparse::ranges_that_overlap_are_copied_as_they_were";
    isolated(test, &[], |driver| {
        driver.start();
        let address = driver.alloc(MIB);
        assert_eq!(driver.cuMemsetD8_v2(address + 300_000, 7, 1), SUCCESS);
        let copied = driver.cuMemcpyDtoDAsync_v2_ptsz(address + 200_000, address, 800_000, 0);
        assert_eq!(copied, SUCCESS);
        assert_eq!(byte(driver, address + 500_000), 7);
        assert_eq!(byte(driver, address + 300_000), 0);
    });
}
