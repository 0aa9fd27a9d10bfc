//! The table.
//!
//! **Total memory.** Drivers differ by some hundred MiB in what they keep, and
//! newer ones keep more; where several figures are public, the newer one stands
//! here and `within` covers the others. A total in MiB is what PyTorch's device
//! properties print, as found in public repositories (which cut it to whole MiB);
//! one in GiB is from an out-of-memory message in an issue.
//!
//! | device | total | beside that |
//! |---|---|---|
//! | H200 | 143,156 MiB | |
//! | H100 SXM | 81,089 MiB | 81,082 and 81,090 MiB |
//! | H100 PCIe | 81,008 MiB | 79.11 GiB of an H100 in vllm-project/vllm#27508 |
//! | H100 NVL | 93.00 GiB | ali-vilab/VACE#56 |
//! | GH200 | 94.88 GiB | Lightning-AI/litgpt#1892 |
//! | B200 | 182,631 MiB | 182,642 MiB; pytorch/ao#4002, with its bus, cache and clock |
//! | A100 40 | 42,298,834,944 bytes | `deviceQuery` in bottlerocket-os/bottlerocket#3873; 39.59 GiB with older drivers (raoyongming/DenseCLIP#52) |
//! | A100 80 | 79.14 GiB | lianqi1008/Control-GIC#6; 79.25 GiB with older drivers (levihsu/OOTDiffusion#235) |
//! | A40 | 45,416 MiB | |
//! | A30 | 23.53 GiB | google/RB-Modulation#5 |
//! | A10G | 22,587 MiB | |
//! | L40S | 44.42 GiB | stepfun-ai/Step-Video-T2V#8; 45,589 MiB |
//! | L40 | 44.40 GiB | QwenLM/Qwen3-VL#2097 |
//! | RTX 6000 Ada | 48,622 MiB | 44.43 GiB with error correction (DINGYANB/MTVCrafter#21) |
//! | RTX A6000 | 48,676 MiB | |
//! | T4 | 15,095 MiB | 15,109 MiB with older drivers, 14,930 MiB |
//! | V100 16 | 16,160 MiB | 16,130 MiB |
//! | V100 32 | 31.75 GiB | hiyouga/LlamaFactory#182, which does not name the card |
//! | P100 | 16,280 MiB | |
//! | RTX 5090 | 31.36 GiB | TrajectoryCrafter/TrajectoryCrafter#20; 31.37 GiB in Wan-Video/Wan2.1#465 |
//! | RTX 4090 | 23.52 GiB | Soul-AILab/SoulX-FlashTalk#5; 23.64 GiB in 3DTopia/Phidias-Diffusion#8 |
//! | RTX 4080 | 16,049 MiB | |
//! | RTX 4070 Ti | 11.70 GiB | Kwai-Kolors/Kolors#11; 11.73 GiB in OpenLMLab/LOMO#17 |
//! | RTX 3090 | 23.50 GiB | XChenZ/havatar#6; 24,268 MiB with older drivers |
//! | RTX 3080 | 9.78 GiB | zai-org/CogVideo#34 |
//! | RTX 3060 12 | 11.76 GiB | TencentARC/PhotoMaker#47; 11,931 to 12,044 MiB |
//! | RTX 2080 Ti | 11,019 MiB | |
//!
//! For two no public figure was at hand that names both the card and the total:
//! the A10 has the A10G's, for both of which `nvidia-smi` says 23,028 MiB
//! (QwenLM/Qwen3#678), and the L4 what is left of its 23,034 MiB
//! (lmstudio-ai/lmstudio-bug-tracker#1638): right to within 256 MiB. Under
//! Windows the desktop cards show all of their memory, which is more.
//!
//! **Context.** 552,402,944 bytes were measured on the H200 (driver 580.159,
//! torch 2.11). Most of a context is a stack for each thread that the device can
//! hold at once, so that other devices are estimated by the number of those.
//!
//! Multiprocessors, clocks, buses and caches are those of NVIDIA's data sheets;
//! what a program takes depends on the compute capability and the number of
//! multiprocessors at most.

use crate::{Device, limits};

/// Every device that can be simulated, the newest data-centre devices first.
pub static DEVICES: &[Device] = &[
    row(("h200", "NVIDIA H200"), mib(143_156), 1, (9, 0), 132)
        .chip(60 << 20, 1_980_000)
        .memory(3_201_000, 6144)
        .measured_context(552_402_944),
    row(
        ("h100-sxm", "NVIDIA H100 80GB HBM3"),
        mib(81_089),
        128,
        (9, 0),
        132,
    )
    .chip(50 << 20, 1_980_000)
    .memory(2_619_000, 5120),
    row(
        ("h100-pcie", "NVIDIA H100 PCIe"),
        mib(81_008),
        128,
        (9, 0),
        114,
    )
    .chip(50 << 20, 1_755_000)
    .memory(1_593_000, 5120),
    row(
        ("h100-nvl", "NVIDIA H100 NVL"),
        gib(93, 0),
        128,
        (9, 0),
        132,
    )
    .chip(60 << 20, 1_785_000)
    .memory(2_619_000, 6144),
    row(
        ("gh200", "NVIDIA GH200 480GB"),
        gib(94, 88),
        512,
        (9, 0),
        132,
    )
    .chip(60 << 20, 1_980_000)
    .memory(2_619_000, 6144),
    row(("b200", "NVIDIA B200"), mib(182_631), 16, (10, 0), 148)
        .chip(253 << 19, 1_965_000)
        .memory(3_996_000, 7680),
    row(
        ("a100-40", "NVIDIA A100-SXM4-40GB"),
        42_298_834_944,
        200,
        (8, 0),
        108,
    )
    .chip(40 << 20, 1_410_000)
    .memory(1_215_000, 5120),
    row(
        ("a100-80", "NVIDIA A100-SXM4-80GB"),
        gib(79, 14),
        128,
        (8, 0),
        108,
    )
    .chip(40 << 20, 1_410_000)
    .memory(1_593_000, 5120),
    row(("a40", "NVIDIA A40"), mib(45_416), 200, (8, 6), 84)
        .chip(6 << 20, 1_740_000)
        .memory(7_251_000, 384),
    row(("a30", "NVIDIA A30"), gib(23, 53), 128, (8, 0), 56)
        .chip(24 << 20, 1_440_000)
        .memory(1_215_000, 3072),
    row(("a10", "NVIDIA A10"), mib(22_587), 200, (8, 6), 72)
        .chip(6 << 20, 1_695_000)
        .memory(6_251_000, 384),
    row(("a10g", "NVIDIA A10G"), mib(22_587), 200, (8, 6), 80)
        .chip(6 << 20, 1_710_000)
        .memory(6_251_000, 384),
    row(("l40s", "NVIDIA L40S"), gib(44, 42), 128, (8, 9), 142)
        .chip(96 << 20, 2_520_000)
        .memory(9_001_000, 384),
    row(("l40", "NVIDIA L40"), gib(44, 40), 128, (8, 9), 142)
        .chip(96 << 20, 2_490_000)
        .memory(9_001_000, 384),
    row(("l4", "NVIDIA L4"), mib(22_558), 256, (8, 9), 58)
        .chip(48 << 20, 2_040_000)
        .memory(6_251_000, 192),
    row(
        ("rtx-6000-ada", "NVIDIA RTX 6000 Ada Generation"),
        mib(48_622),
        200,
        (8, 9),
        142,
    )
    .chip(96 << 20, 2_505_000)
    .memory(10_001_000, 384)
    .without_ecc(),
    row(
        ("rtx-a6000", "NVIDIA RTX A6000"),
        mib(48_676),
        200,
        (8, 6),
        84,
    )
    .chip(6 << 20, 1_800_000)
    .memory(8_001_000, 384)
    .without_ecc(),
    row(("t4", "Tesla T4"), mib(15_095), 170, (7, 5), 40)
        .chip(4 << 20, 1_590_000)
        .memory(5_001_000, 256),
    row(
        ("v100-16", "Tesla V100-SXM2-16GB"),
        mib(16_160),
        32,
        (7, 0),
        80,
    )
    .chip(6 << 20, 1_530_000)
    .memory(877_000, 4096),
    row(
        ("v100-32", "Tesla V100-SXM2-32GB"),
        gib(31, 75),
        64,
        (7, 0),
        80,
    )
    .chip(6 << 20, 1_530_000)
    .memory(877_000, 4096),
    row(
        ("p100", "Tesla P100-PCIE-16GB"),
        mib(16_280),
        32,
        (6, 0),
        56,
    )
    .chip(4 << 20, 1_328_500)
    .memory(715_000, 4096),
    row(
        ("rtx-5090", "NVIDIA GeForce RTX 5090"),
        gib(31, 36),
        32,
        (12, 0),
        170,
    )
    .chip(96 << 20, 2_407_000)
    .memory(14_001_000, 512)
    .without_ecc(),
    row(
        ("rtx-4090", "NVIDIA GeForce RTX 4090"),
        gib(23, 52),
        160,
        (8, 9),
        128,
    )
    .chip(72 << 20, 2_520_000)
    .memory(10_501_000, 384)
    .without_ecc(),
    row(
        ("rtx-4080", "NVIDIA GeForce RTX 4080"),
        mib(16_049),
        128,
        (8, 9),
        76,
    )
    .chip(64 << 20, 2_505_000)
    .memory(11_201_000, 256)
    .without_ecc(),
    row(
        ("rtx-4070-ti", "NVIDIA GeForce RTX 4070 Ti"),
        gib(11, 70),
        64,
        (8, 9),
        60,
    )
    .chip(48 << 20, 2_610_000)
    .memory(10_501_000, 192)
    .without_ecc(),
    row(
        ("rtx-3090", "NVIDIA GeForce RTX 3090"),
        gib(23, 50),
        200,
        (8, 6),
        82,
    )
    .chip(6 << 20, 1_695_000)
    .memory(9_751_000, 384)
    .without_ecc(),
    row(
        ("rtx-3080", "NVIDIA GeForce RTX 3080"),
        gib(9, 78),
        64,
        (8, 6),
        68,
    )
    .chip(5 << 20, 1_710_000)
    .memory(9_501_000, 320)
    .without_ecc(),
    row(
        ("rtx-3060-12", "NVIDIA GeForce RTX 3060"),
        gib(11, 76),
        64,
        (8, 6),
        28,
    )
    .chip(9 << 18, 1_777_000)
    .memory(7_501_000, 192)
    .without_ecc(),
    row(
        ("rtx-2080-ti", "NVIDIA GeForce RTX 2080 Ti"),
        mib(11_019),
        64,
        (7, 5),
        68,
    )
    .chip(11 << 19, 1_545_000)
    .memory(7_000_000, 352)
    .without_ecc(),
];

const fn mib(count: u64) -> u64 {
    count << 20
}

/// GiB and hundredths of one, as PyTorch prints them, in whole MiB.
const fn gib(whole: u64, hundredths: u64) -> u64 {
    mib((whole << 10) + (hundredths << 10) / 100)
}

const fn row(
    (key, name): (&'static str, &'static str),
    memory_bytes: u64,
    within_mib: u64,
    compute: (u32, u32),
    multiprocessors: u32,
) -> Device {
    Device {
        key,
        name,
        memory_bytes,
        memory_within_bytes: mib(within_mib),
        compute,
        multiprocessors,
        l2_bytes: 0,
        clock_khz: 0,
        memory_clock_khz: 0,
        bus_bits: 0,
        ecc: true,
        context_bytes: estimated_context(multiprocessors, compute),
        context_measured: false,
    }
}

/// The H200's context in the measure of the threads that a device holds, in
/// whole MiB.
const fn estimated_context(multiprocessors: u32, compute: (u32, u32)) -> u64 {
    let threads = multiprocessors as u64 * limits(compute).threads as u64;
    let h200_threads = 132 * 2048;
    mib(((552_402_944 >> 10) * threads / h200_threads) >> 10)
}

impl Device {
    const fn chip(mut self, l2_bytes: u64, clock_khz: u32) -> Self {
        self.l2_bytes = l2_bytes;
        self.clock_khz = clock_khz;
        self
    }

    const fn memory(mut self, clock_khz: u32, bus_bits: u32) -> Self {
        self.memory_clock_khz = clock_khz;
        self.bus_bits = bus_bits;
        self
    }

    const fn without_ecc(mut self) -> Self {
        self.ecc = false;
        self
    }

    const fn measured_context(mut self, bytes: u64) -> Self {
        self.context_bytes = bytes;
        self.context_measured = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_is_whole_and_its_key_its_own() {
        let keys: BTreeSet<_> = DEVICES.iter().map(|device| device.key).collect();
        assert_eq!(keys.len(), DEVICES.len());
        for device in DEVICES {
            assert!(device.l2_bytes > 0 && device.bus_bits > 0, "{device:?}");
            assert!(
                device.clock_khz > 0 && device.memory_clock_khz > 0,
                "{device:?}"
            );
            assert!(
                device.context_bytes < device.memory_bytes / 20,
                "{device:?}"
            );
            assert!(device.memory_within_bytes <= mib(512), "{device:?}");
        }
    }

    #[test]
    fn totals_print_as_pytorch_prints_them() {
        let printed = |key: &str| {
            let device = DEVICES.iter().find(|device| device.key == key).unwrap();
            format!("{:.2} GiB", device.memory_bytes as f64 / f64::from(1 << 30))
        };
        assert_eq!(printed("a100-40"), "39.39 GiB");
        assert_eq!(printed("a100-80"), "79.14 GiB");
        assert_eq!(printed("rtx-4090"), "23.52 GiB");
        assert_eq!(printed("h200"), "139.80 GiB");
        assert_eq!(printed("rtx-3080"), "9.78 GiB");
    }
}
