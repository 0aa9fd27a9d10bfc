//! Time in a hook: the cycle counter where the kernel trusts it as its own clock, else `CLOCK_MONOTONIC`.
//!
//! Ticks mean nothing by themselves; each chunk carries an anchor to the monotonic and the real time.

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

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
    remember_waking();
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

/// Readings of which the tightest is taken: the thread may be interrupted between two clocks.
const TRIES: u32 = 3;

/// This moment in all three clocks.
pub(crate) fn anchor() -> Anchor {
    let read = || {
        let before = now();
        let monotonic_ns = nanoseconds(libc::CLOCK_MONOTONIC);
        let realtime_ns = nanoseconds(libc::CLOCK_REALTIME);
        let width = now().wrapping_sub(before);
        (
            width,
            Anchor {
                ticks: before.wrapping_add(width / 2),
                monotonic_ns,
                realtime_ns,
            },
        )
    };
    let first = read();
    (1..TRIES)
        .map(|_| read())
        .fold(
            first,
            |best, next| if next.0 < best.0 { next } else { best },
        )
        .1
}

/// When the process woke, for a reader's first calibration: each later chunk brings a further anchor.
static WOKE: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// Remembers this moment as the one at which the process woke.
fn remember_waking() {
    let Anchor {
        ticks,
        monotonic_ns,
        realtime_ns,
    } = anchor();
    for (word, value) in WOKE.iter().zip([ticks, monotonic_ns, realtime_ns]) {
        word.store(value, Relaxed);
    }
}

/// When the process woke. Relaxed: written before the helper threads, which ask for it, were started.
pub(crate) fn waking() -> Anchor {
    let [ticks, monotonic_ns, realtime_ns] =
        [0, 1, 2].map(|at: usize| WOKE.get(at).map_or(0, |word| word.load(Relaxed)));
    Anchor {
        ticks,
        monotonic_ns,
        realtime_ns,
    }
}
