//! cuBLASLt: one algorithm, without a workspace.

use crate::export::{Out, answers, stubs};
use crate::object;

answers! {
    version "libcublasLt.so.13";
    /// The version, as `major * 10000 + minor * 100 + patch`.
    fn cublasLtGetVersion() -> usize {
        130_000
    }

    /// Creates a description.
    fn cublasLtMatmulDescCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates a layout.
    fn cublasLtMatrixLayoutCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Creates a preference.
    fn cublasLtMatmulPreferenceCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// The algorithms that fit: one (`cublasLtMatmulHeuristicResult_t`, 96
    /// zeroed bytes: no workspace, success).
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: usize,
        _operation: usize,
        _a: usize,
        _b: usize,
        _c: usize,
        _d: usize,
        _preference: usize,
        _wanted: i32,
        results: Out<[u8; 96]>,
        count: Out<i32>,
    ) -> i32 {
        results.set([0; 96]);
        count.set(1);
        0
    }
}

stubs! {
    version "libcublasLt.so.13";
    computes {
        cublasLtMatmul
        cublasLtMatmulDescDestroy
        cublasLtMatmulDescSetAttribute
        cublasLtMatmulPreferenceDestroy
        cublasLtMatmulPreferenceSetAttribute
        cublasLtMatrixLayoutDestroy
        cublasLtMatrixLayoutSetAttribute
    }
    refuses 15 {

    }
}
