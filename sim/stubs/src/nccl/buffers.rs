//! What NCCL takes of the device for a communicator: a model.
//!
//! A connection of two ranks has a buffer for each of three protocols, and a
//! ring has two connections in each channel. The sizes are NCCL's defaults
//! (`NCCL_BUFFSIZE` and its documentation; `NCCL_LL_*` and `NCCL_LL128_*` in its
//! public `device.h`). How many channels there are depends on the links between
//! the devices, which are not simulated, so the number is the user's:
//! `GPUMEM_SIM_NCCL_CHANNELS`, by default none. NCCL of today connects at the
//! first collective; here it is at creation.

use std::sync::LazyLock;

use crate::driver::Driver;

/// Of the protocol for large messages: `NCCL_BUFFSIZE`.
const SIMPLE_BYTES: usize = 4 << 20;
/// Of the one for small messages: 8 lines a thread, 512 threads, 8 steps, 16
/// bytes a line.
const LL_BYTES: usize = 8 * 512 * 8 * 16;
/// Of the one for medium messages: 120 words a thread, 640 threads, 8 steps.
const LL128_BYTES: usize = 120 * 640 * 8 * 8;
/// Connections of a ring in a channel: from one neighbour, to the other.
const CONNECTIONS: usize = 2;
/// Most channels (`MAXCHANNELS`).
const MAX_CHANNELS: usize = 64;

/// A channel's bytes.
const CHANNEL_BYTES: usize = CONNECTIONS * (SIMPLE_BYTES + LL_BYTES + LL128_BYTES);

/// The buffers of a communicator, which are given back with it.
pub(super) struct Buffers(Vec<usize>);

impl Buffers {
    /// Takes the buffers; a rank that is alone needs none. `None` where they
    /// cannot be had, and then none is kept.
    pub(super) fn take(driver: Option<&Driver>, ranks: i32) -> Option<Self> {
        let mut buffers = Self(Vec::new());
        let channels = if ranks > 1 { channels() } else { 0 };
        for _ in 0..channels {
            buffers.0.push(driver?.allocate(CHANNEL_BYTES)?);
        }
        Some(buffers)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let Some(driver) = crate::driver::get() else {
            return;
        };
        for address in self.0.drain(..) {
            driver.free(address);
        }
    }
}

/// How many channels the environment asks for.
fn channels() -> usize {
    static CHANNELS: LazyLock<usize> = LazyLock::new(|| {
        let text = std::env::var("GPUMEM_SIM_NCCL_CHANNELS").unwrap_or_default();
        text.parse().unwrap_or(0).min(MAX_CHANNELS)
    });
    *CHANNELS
}
