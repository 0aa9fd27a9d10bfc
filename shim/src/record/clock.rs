//! Time in a hook: the cycle counter where the kernel trusts it as its own clock, else `CLOCK_MONOTONIC`.
//!
//! Ticks mean nothing by themselves; each chunk carries an anchor to the monotonic and the real time.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use gpumem_wire::define::Anchor;

const UNKNOWN: u8 = 0;
const CYCLES: u8 = 1;
const MONOTONIC: u8 = 2;

/// Which clock. Relaxed: whoever reads UNKNOWN finds out for itself, and all find the same.
static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Chooses the clock. Called once, when the process wakes, since it reads a file.
pub(crate) fn choose() {
    let source = std::fs::read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let trusted = cfg!(target_arch = "x86_64") && source.is_ok_and(|name| name.starts_with(b"tsc"));
    SOURCE.store(if trusted { CYCLES } else { MONOTONIC }, Relaxed);
}

/// Now, in ticks.
#[inline(always)]
pub(crate) fn now() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if SOURCE.load(Relaxed) == CYCLES {
        // SAFETY: rdtsc exists on every x86-64 processor and reads no memory.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    nanoseconds(libc::CLOCK_MONOTONIC)
}

fn nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// This moment in all three clocks.
pub(crate) fn anchor() -> Anchor {
    Anchor {
        ticks: now(),
        monotonic_ns: nanoseconds(libc::CLOCK_MONOTONIC),
        realtime_ns: nanoseconds(libc::CLOCK_REALTIME),
    }
}
