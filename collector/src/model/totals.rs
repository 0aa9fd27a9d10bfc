//! Totals of a device: how much is alive, in which layer, and how much it ever was.

use crate::model::place::{Framework, Layer};

/// A sum that stays at the most that fits: what a damaged or made-up capture says must not wrap around to little.
pub fn saturating_sum(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

/// A quantity of memory over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// Bytes alive now.
    pub live_bytes: u64,
    /// Objects alive now.
    pub live_objects: u64,
    /// The most bytes that ever were alive.
    pub peak_bytes: u64,
    /// When that was first so, in nanoseconds since the epoch.
    pub peak_time_ns: u64,
    /// Bytes ever made.
    pub made_bytes: u64,
    /// Objects ever made.
    pub made_objects: u64,
}

/// The most of something, and when that was first so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) bytes: u64,
    pub(crate) time_ns: u64,
}

impl Peak {
    /// The peak without `bytes` that counted from some time on; `before`: the peak up to that time.
    pub(crate) fn without(self, bytes: u64, before: Self) -> Self {
        let since = self.bytes.saturating_sub(bytes);
        if since > before.bytes {
            Self {
                bytes: since,
                ..self
            }
        } else {
            before
        }
    }
}

impl Gauge {
    pub(crate) const fn peak(&self) -> Peak {
        Peak {
            bytes: self.peak_bytes,
            time_ns: self.peak_time_ns,
        }
    }

    pub(crate) fn set_peak(&mut self, peak: Peak) {
        self.peak_bytes = peak.bytes;
        self.peak_time_ns = peak.time_ns;
    }

    /// An object was made.
    pub fn made(&mut self, bytes: u64, time_ns: u64) {
        self.made_bytes = self.made_bytes.saturating_add(bytes);
        self.made_objects += 1;
        self.gained(bytes, time_ns);
    }

    /// An object is alive again, or counts here from now on.
    pub fn gained(&mut self, bytes: u64, time_ns: u64) {
        self.live_bytes = self.live_bytes.saturating_add(bytes);
        self.live_objects += 1;
        if self.live_bytes > self.peak_bytes {
            self.peak_bytes = self.live_bytes;
            self.peak_time_ns = time_ns;
        }
    }

    /// An object is gone, or no longer counts here.
    pub fn lost(&mut self, bytes: u64) {
        self.live_bytes = self.live_bytes.saturating_sub(bytes);
        self.live_objects = self.live_objects.saturating_sub(1);
    }
}

/// What happened to an object, for the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It came to life.
    Made,
    /// It is back after a free that failed.
    Restored,
    /// It died.
    Lost,
}

/// The totals of one device, or of host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceTotals {
    /// By layer, each on its own: a segment and the blocks in it both count. See [`Layer::index`].
    pub layers: [Gauge; Layer::ALL.len()],
    /// Memory in use, each byte once at the innermost layer that knows it: framework blocks, and driver memory that is no
    /// segment with visible blocks. The cache of an allocator whose blocks are visible does not count.
    pub live: Gauge,
    /// Memory taken from the driver.
    pub reserved: Gauge,
    /// Bytes of `live` that lie in segments of an allocator whose blocks are not visible.
    pub opaque_bytes: u64,
}

impl DeviceTotals {
    /// The totals of a layer.
    pub fn layer(&self, layer: Layer) -> &Gauge {
        &self.layers[layer.index()]
    }

    pub(crate) fn turn(
        &mut self,
        turn: Turn,
        layer: Layer,
        segment_of: Option<Framework>,
        bytes: u64,
        time_ns: u64,
    ) {
        let apply = |gauge: &mut Gauge| match turn {
            Turn::Made => gauge.made(bytes, time_ns),
            Turn::Restored => gauge.gained(bytes, time_ns),
            Turn::Lost => gauge.lost(bytes),
        };
        apply(&mut self.layers[layer.index()]);
        if layer != Layer::TorchBlock {
            apply(&mut self.reserved);
        }
        if !segment_of.is_some_and(Framework::blocks_are_seen) {
            apply(&mut self.live);
        }
        if segment_of.is_some_and(|framework| !framework.blocks_are_seen()) {
            self.opaque_bytes = match turn {
                Turn::Lost => self.opaque_bytes.saturating_sub(bytes),
                _ => self.opaque_bytes.saturating_add(bytes),
            };
        }
    }

    /// Driver memory turns out to be a segment of a framework whose blocks are seen: it no longer counts as in use itself.
    /// `opaque`: it was one of another framework whose blocks are not seen.
    pub(crate) fn adopted(&mut self, bytes: u64, opaque: bool) {
        self.live.lost(bytes);
        if opaque {
            self.opaque_bytes = self.opaque_bytes.saturating_sub(bytes);
        }
    }
}
