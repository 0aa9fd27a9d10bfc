//! Two threads at random, and a ledger that is right at the end.

use std::collections::BTreeMap;

use crate::library::*;

const OPERATIONS: usize = 100_000;
const GRANULE: usize = 2 * MIB;

/// A small generator (xorshift): the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

/// What one thread holds: address or handle, and size.
#[derive(Default)]
struct Holdings {
    device: Vec<(u64, usize)>,
    blocks: Vec<(u64, usize)>,
    pinned: Vec<(u64, usize)>,
    /// A reservation of one granule with released memory mapped into it.
    mapped: Vec<u64>,
    refused: usize,
}

fn take<T>(held: &mut Vec<T>, random: &mut Random) -> Option<T> {
    (!held.is_empty()).then(|| held.swap_remove(random.below(held.len())))
}

fn operate(driver: &Driver, random: &mut Random, holdings: &mut Holdings) {
    let bytes = 1 + random.below(3 * MIB);
    let mut out = 0;
    let kept = |status, held: &mut Vec<(u64, usize)>, refused: &mut usize, out| match status {
        SUCCESS => held.push((out, bytes)),
        status => {
            assert_eq!(status, OUT_OF_MEMORY);
            *refused += 1;
        }
    };
    match random.below(9) {
        0 | 1 => {
            let status = driver.cuMemAlloc_v2(&mut out, bytes);
            kept(status, &mut holdings.device, &mut holdings.refused, out);
        }
        2 => {
            let status = driver.cuMemAllocAsync(&mut out, bytes, 0);
            kept(status, &mut holdings.blocks, &mut holdings.refused, out);
        }
        3 => {
            let status = driver.cuMemHostAlloc(&mut out, bytes, 0);
            kept(status, &mut holdings.pinned, &mut holdings.refused, out);
        }
        4 => {
            if let Some((address, _)) = take(&mut holdings.device, random) {
                // Either free will do.
                assert_eq!(driver.cuMemFreeAsync(address, 0), SUCCESS);
            }
            if let Some((address, _)) = take(&mut holdings.device, random) {
                assert_eq!(driver.cuMemFree_v2(address), SUCCESS);
            }
        }
        5 => {
            if let Some((address, _)) = take(&mut holdings.blocks, random) {
                assert_eq!(driver.cuMemFreeAsync(address, 0), SUCCESS);
            }
        }
        6 => {
            if let Some((address, _)) = take(&mut holdings.pinned, random) {
                assert_eq!(driver.cuMemFreeHost(address), SUCCESS);
            }
        }
        7 => {
            let here = MemoryProps::new(on(0));
            match driver.cuMemCreate(&mut out, GRANULE, &here, 0) {
                SUCCESS => {
                    let range = get(|range| driver.cuMemAddressReserve(range, GRANULE, 0, 0, 0));
                    assert_eq!(driver.cuMemMap(range, GRANULE, 0, out, 0), SUCCESS);
                    assert_eq!(driver.cuMemRelease(out), SUCCESS);
                    holdings.mapped.push(range);
                }
                status => {
                    assert_eq!(status, OUT_OF_MEMORY);
                    holdings.refused += 1;
                }
            }
        }
        _ => {
            if let Some(range) = take(&mut holdings.mapped, random) {
                assert_eq!(driver.cuMemUnmap(range, GRANULE), SUCCESS);
                assert_eq!(driver.cuMemAddressFree(range, GRANULE), SUCCESS);
            }
            assert_eq!(driver.cuStreamSynchronize(0), SUCCESS);
        }
    }
}

/// The live objects of a kind in the truth: address and size.
fn live(driver: &Driver, kind: &str) -> BTreeMap<u64, u64> {
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let live = driver.live(kind);
    live.iter()
        .map(|object| (number(&object["address"]), number(&object["size_bytes"])))
        .collect()
}

#[test]
fn the_ledger_is_right_after_random_work() {
    let test = "threads::the_ledger_is_right_after_random_work";
    isolated(test, &[("GPUMEM_SIM_MEMORY", "512MiB")], |driver| {
        let context = driver.start();
        let work = |seed| {
            assert_eq!(driver.cuCtxSetCurrent(context), SUCCESS);
            let mut random = Random(seed);
            let mut holdings = Holdings::default();
            for _ in 0..OPERATIONS {
                operate(driver, &mut random, &mut holdings);
            }
            holdings
        };
        let [first, second] = std::thread::scope(|scope| {
            [0x9e37_79b9, 0x7f4a_7c15]
                .map(|seed| scope.spawn(move || work(seed)))
                .map(|thread| thread.join().unwrap())
        });
        assert!(
            first.refused + second.refused > 0,
            "the limit was never reached"
        );

        let of = |held: fn(&Holdings) -> &Vec<(u64, usize)>| -> BTreeMap<u64, u64> {
            let both = held(&first).iter().chain(held(&second));
            both.map(|(address, bytes)| (*address, *bytes as u64))
                .collect()
        };
        assert_eq!(live(driver, "device"), of(|holdings| &holdings.device));
        assert_eq!(live(driver, "pool-block"), of(|holdings| &holdings.blocks));
        assert_eq!(live(driver, "pinned"), of(|holdings| &holdings.pinned));
        let mapped = first.mapped.iter().chain(&second.mapped);
        let mapped: BTreeMap<u64, u64> = mapped.map(|range| (*range, GRANULE as u64)).collect();
        assert_eq!(live(driver, "mapping"), mapped);
        assert_eq!(live(driver, "reservation"), mapped);

        let truth = driver.truth();
        let live = truth["live"].as_array().unwrap();
        let charged: u64 = live
            .iter()
            .map(|o| o["charged_bytes"].as_u64().unwrap())
            .sum();
        assert_eq!(truth["devices"][0]["charged_bytes"], charged);
        assert_eq!(driver.used() as u64, charged);

        // All of it back: nothing is left.
        for holdings in [&first, &second] {
            for (address, _) in holdings.device.iter().chain(&holdings.blocks) {
                assert_eq!(driver.cuMemFree_v2(*address), SUCCESS);
            }
            for (address, _) in &holdings.pinned {
                assert_eq!(driver.cuMemFreeHost(*address), SUCCESS);
            }
            for range in &holdings.mapped {
                assert_eq!(driver.cuMemUnmap(*range, GRANULE), SUCCESS);
                assert_eq!(driver.cuMemAddressFree(*range, GRANULE), SUCCESS);
            }
        }
        assert_eq!(driver.cuCtxSynchronize(), SUCCESS);
        assert_eq!(driver.used(), 0);
        assert_eq!(driver.truth()["live"].as_array().unwrap().len(), 1);
    });
}
