//! cuBLASLt: one algorithm, without a workspace.

use crate::export::{Out, answers, stubs};
use crate::object;

/// `cublasLtMatmulHeuristicResult_t`, zeroed: an algorithm (64 bytes) without a
/// workspace, and success.
type Found = [u8; 96];
/// `cublasLtMatmulAlgo_t`.
type Algorithm = [u8; 64];

answers! {
    versions ["libcublasLt.so.13", "libcublasLt.so.12"];
    /// Creates a handle.
    fn cublasLtCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cublasLtDestroy(handle: usize) -> i32 {
        object::end(handle)
    }

    /// Creates a description.
    fn cublasLtMatmulDescCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cublasLtMatmulDescDestroy(description: usize) -> i32 {
        object::end(description)
    }

    /// Creates a layout.
    fn cublasLtMatrixLayoutCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cublasLtMatrixLayoutDestroy(layout: usize) -> i32 {
        object::end(layout)
    }

    /// Creates a preference.
    fn cublasLtMatmulPreferenceCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cublasLtMatmulPreferenceDestroy(preference: usize) -> i32 {
        object::end(preference)
    }

    /// The algorithms that fit: one.
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: usize,
        _operation: usize,
        _a: usize,
        _b: usize,
        _c: usize,
        _d: usize,
        _preference: usize,
        wanted: i32,
        results: Out<Found>,
        count: Out<i32>,
    ) -> i32 {
        let found = i32::from(wanted > 0);
        if found > 0 {
            results.set([0; 96]);
        }
        count.set(found);
        0
    }

    /// An algorithm by its number.
    fn cublasLtMatmulAlgoInit(
        _handle: usize,
        _compute: i32,
        _scale: i32,
        _a: i32,
        _b: i32,
        _c: i32,
        _d: i32,
        _number: i32,
        out: Out<Algorithm>,
    ) -> i32 {
        out.set([0; 64]);
        0
    }

    /// Whether an algorithm fits: it does.
    fn cublasLtMatmulAlgoCheck(
        _handle: usize,
        _operation: usize,
        _a: usize,
        _b: usize,
        _c: usize,
        _d: usize,
        _algorithm: usize,
        out: Out<Found>,
    ) -> i32 {
        out.set([0; 96]);
        0
    }

    /// How an algorithm is set.
    fn cublasLtMatmulAlgoConfigGetAttribute(
        _algorithm: usize,
        _attribute: i32,
        out: Out<u8>,
        size_bytes: usize,
        written: Out<usize>,
    ) -> i32 {
        zeros(out, size_bytes, written)
    }

    /// What a layout is like.
    fn cublasLtMatrixLayoutGetAttribute(
        _layout: usize,
        _attribute: i32,
        out: Out<u8>,
        size_bytes: usize,
        written: Out<usize>,
    ) -> i32 {
        zeros(out, size_bytes, written)
    }
}

/// Answers an attribute of whatever size, which is not remembered: zeros.
fn zeros(out: Out<u8>, size_bytes: usize, written: Out<usize>) -> i32 {
    for index in 0..size_bytes {
        out.set_at(index, 0);
    }
    written.set(size_bytes);
    0
}

answers! {
    versions [first "libcublasLt.so.13"];
    /// The version, as `major * 10000 + minor * 100 + patch`.
    fn cublasLtGetVersion_13 as cublasLtGetVersion() -> usize {
        130_000
    }
}
answers! {
    versions [other "libcublasLt.so.12"];
    /// The version that programs of 12 find.
    fn cublasLtGetVersion_12 as cublasLtGetVersion() -> usize {
        120_800
    }
}

stubs! {
    versions ["libcublasLt.so.13", "libcublasLt.so.12"];
    computes {
        cublasLtMatmul
        cublasLtMatmulAlgoConfigSetAttribute
        cublasLtMatmulDescSetAttribute
        cublasLtMatmulPreferenceSetAttribute
        cublasLtMatrixLayoutSetAttribute
    }
    refuses 15 {}
}
