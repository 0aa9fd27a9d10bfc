//! cuFFT: plans that transform nothing. A plan's work area is a model: as large
//! as the transform's complex elements, which is the least that cuFFT's manual
//! names ("as low as 1*batch*n[0]*...*n[rank-1]").

use std::sync::atomic::{AtomicI32, Ordering};

use crate::export::{In, Out, answers, stubs};

static PLANS: AtomicI32 = AtomicI32::new(0);

/// Answers the version, as `major * 1000 + minor * 100 + patch`.
fn version(out: Out<i32>, version: i32) -> i32 {
    out.set(version);
    0
}

answers! {
    versions [first "libcufft.so.12"];
    /// The version that programs of 13 find.
    fn cufftGetVersion_13 as cufftGetVersion(out: Out<i32>) -> i32 {
        version(out, 12_000)
    }
}
answers! {
    versions [other "libcufft.so.11"];
    /// The version that programs of 12 find.
    fn cufftGetVersion_12 as cufftGetVersion(out: Out<i32>) -> i32 {
        version(out, 11_300)
    }
}

/// Bytes of a complex element of a `cudaDataType`: twice a half, a double, a
/// float.
fn complex_bytes(kind: i32) -> usize {
    match kind {
        2 | 6 => 4,
        1 | 5 => 16,
        _ => 8,
    }
}

answers! {
    versions ["libcufft.so.12", "libcufft.so.11"];
    /// Creates a plan: a number.
    fn cufftCreate(out: Out<i32>) -> i32 {
        // Relaxed: each plan gets its own number, which orders nothing.
        out.set(PLANS.fetch_add(1, Ordering::Relaxed) + 1);
        0
    }

    /// Describes a plan; its work area is answered.
    fn cufftXtMakePlanMany(
        _plan: i32,
        rank: i32,
        lengths: In<i64>,
        _input: usize,
        _input_stride: i64,
        _input_distance: i64,
        _input_type: i32,
        _output: usize,
        _output_stride: i64,
        _output_distance: i64,
        _output_type: i32,
        batch: i64,
        work_bytes: Out<usize>,
        execution_type: i32,
    ) -> i32 {
        let lengths = lengths.all(usize::try_from(rank.clamp(0, 3)).unwrap_or(0));
        let elements = lengths
            .into_iter()
            .chain([batch])
            .map(|count| usize::try_from(count).unwrap_or(0))
            .fold(1_usize, usize::saturating_mul);
        work_bytes.set(elements.saturating_mul(complex_bytes(execution_type)));
        0
    }
}

stubs! {
    versions ["libcufft.so.12", "libcufft.so.11"];
    computes {
        cufftDestroy
        cufftSetAutoAllocation
        cufftSetStream
        cufftSetWorkArea
        cufftXtExec
    }
    refuses 16 {}
}
