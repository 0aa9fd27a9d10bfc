//! cuFFT: plans that transform nothing.

use std::sync::atomic::{AtomicI32, Ordering};

use crate::export::{Out, answers, stubs};

static PLANS: AtomicI32 = AtomicI32::new(0);

answers! {
    version "libcufft.so.12";
    /// Creates a plan: a number.
    fn cufftCreate(out: Out<i32>) -> i32 {
        // Relaxed: each plan gets its own number, which orders nothing.
        out.set(PLANS.fetch_add(1, Ordering::Relaxed) + 1);
        0
    }

    /// Describes a plan; its work area is answered.
    fn cufftXtMakePlanMany(
        _plan: i32,
        _rank: i32,
        _n: usize,
        _input: usize,
        _input_stride: i64,
        _input_distance: i64,
        _input_type: i32,
        _output: usize,
        _output_stride: i64,
        _output_distance: i64,
        _output_type: i32,
        _batch: i64,
        work_bytes: Out<usize>,
        _execution_type: i32,
    ) -> i32 {
        work_bytes.set(1 << 20);
        0
    }
}

stubs! {
    version "libcufft.so.12";
    computes {
        cufftDestroy
        cufftSetAutoAllocation
        cufftSetStream
        cufftSetWorkArea
        cufftXtExec
    }
    refuses 16 {

    }
}
