//! cuBLAS: products succeed and compute nothing. PyTorch brings the workspace
//! (`cublasSetWorkspace_v2`), so nothing is allocated here.

use std::ffi::c_char;

use crate::export::{Out, answers, stubs};
use crate::object;

answers! {
    versions ["libcublas.so.13", "libcublas.so.12"];
    /// Creates a handle.
    fn cublasCreate_v2(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys a handle.
    fn cublasDestroy_v2(handle: usize) -> i32 {
        object::end(handle)
    }

    /// The version, as `major * 10000 + minor * 100 + patch`.
    fn cublasGetVersion_v2(_handle: usize, out: Out<i32>) -> i32 {
        out.set(130_000);
        0
    }

    /// What a status means; it lives for ever. XLA makes a string of it without a
    /// look.
    fn cublasGetStatusString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated cuBLAS" };
        text.as_ptr()
    }

    /// What a status is called; it lives for ever. Other than success, "not
    /// supported" is the only one here.
    fn cublasGetStatusName(status: i32) -> *const c_char {
        let name = if status == 0 { c"CUBLAS_STATUS_SUCCESS" } else { c"CUBLAS_STATUS_NOT_SUPPORTED" };
        name.as_ptr()
    }

    /// The stream of a handle: the legacy one.
    fn cublasGetStream_v2(_handle: usize, out: Out<usize>) -> i32 {
        out.set(0);
        0
    }

    /// The mode of computing: the default one.
    fn cublasGetMathMode(_handle: usize, out: Out<i32>) -> i32 {
        out.set(0);
        0
    }

    /// Where scalars are: on the host.
    fn cublasGetPointerMode_v2(_handle: usize, out: Out<i32>) -> i32 {
        out.set(0);
        0
    }
}

/// Functions that say whether a parameter was wrong; none was.
macro_rules! parameters_checked {
    ($($geqrf:ident $getrs:ident $gels:ident)*) => {
        answers! {
            versions ["libcublas.so.13", "libcublas.so.12"];
            $(
                /// Factors of a batch of matrices.
                fn $geqrf(
                    _handle: usize, _m: i32, _n: i32, _a: usize, _lda: i32, _tau: usize,
                    info: Out<i32>,
                ) -> i32 {
                    info.set(0);
                    0
                }

                /// Solutions of a batch of factored systems.
                fn $getrs(
                    _handle: usize, _operation: i32, _n: i32, _right: i32, _a: usize, _lda: i32,
                    _pivots: usize, _b: usize, _ldb: i32, info: Out<i32>,
                ) -> i32 {
                    info.set(0);
                    0
                }

                /// Least squares of a batch.
                fn $gels(
                    _handle: usize, _operation: i32, _m: i32, _n: i32, _right: i32, _a: usize,
                    _lda: i32, _c: usize, _ldc: i32, info: Out<i32>,
                ) -> i32 {
                    info.set(0);
                    0
                }
            )*
        }
    };
}

parameters_checked! {
    cublasSgeqrfBatched cublasSgetrsBatched cublasSgelsBatched
    cublasDgeqrfBatched cublasDgetrsBatched cublasDgelsBatched
    cublasCgeqrfBatched cublasCgetrsBatched cublasCgelsBatched
    cublasZgeqrfBatched cublasZgetrsBatched cublasZgelsBatched
}

/// Functions that answer one number: zero, wherever it should go, since device
/// memory can be written here, too. A row: name, bytes of the number.
macro_rules! numbers {
    (
        products { $($product:ident $product_bytes:literal)* }
        sums { $($sum:ident $sum_bytes:literal)* }
        places { $($place:ident)* }
    ) => {
        answers! {
            versions ["libcublas.so.13", "libcublas.so.12"];
            $(
                /// A product of two vectors.
                fn $product(
                    _handle: usize, _n: i32, _x: usize, _x_step: i32, _y: usize, _y_step: i32,
                    out: Out<[u8; $product_bytes]>,
                ) -> i32 {
                    out.set([0; $product_bytes]);
                    0
                }
            )*
            $(
                /// A sum over a vector.
                fn $sum(
                    _handle: usize, _n: i32, _x: usize, _x_step: i32, out: Out<[u8; $sum_bytes]>
                ) -> i32 {
                    out.set([0; $sum_bytes]);
                    0
                }
            )*
            $(
                /// The place of an extreme: the first, which is 1.
                fn $place(
                    _handle: usize, n: i32, _x: usize, _x_step: i32, out: Out<i32>
                ) -> i32 {
                    out.set(i32::from(n > 0));
                    0
                }
            )*
        }
    };
}

numbers! {
    products {
        cublasSdot_v2 4
        cublasDdot_v2 8
        cublasCdotc_v2 8
        cublasCdotu_v2 8
        cublasZdotc_v2 16
        cublasZdotu_v2 16
    }
    sums {
        cublasSnrm2_v2 4
        cublasDnrm2_v2 8
        cublasScnrm2_v2 4
        cublasDznrm2_v2 8
        cublasSasum_v2 4
        cublasDasum_v2 8
        cublasScasum_v2 4
        cublasDzasum_v2 8
    }
    places {
        cublasIsamax_v2
        cublasIdamax_v2
        cublasIcamax_v2
        cublasIzamax_v2
        cublasIsamin_v2
        cublasIdamin_v2
        cublasIcamin_v2
        cublasIzamin_v2
    }
}

answers! {
    versions ["libcublas.so.13", "libcublas.so.12"];
    /// A product of two vectors of any type.
    fn cublasDotEx(
        _handle: usize, _n: i32, _x: usize, _x_type: i32, _x_step: i32, _y: usize, _y_type: i32,
        _y_step: i32, out: Out<u8>, out_type: i32, _compute: i32,
    ) -> i32 {
        // `cudaDataType`: halves, doubles and complex ones; else as wide as a float.
        let size_bytes = match out_type {
            2 | 14 => 2,
            1 | 4 => 8,
            5 => 16,
            _ => 4,
        };
        for index in 0..size_bytes {
            out.set_at(index, 0);
        }
        0
    }
}

stubs! {
    versions ["libcublas.so.13", "libcublas.so.12"];
    computes {
        cublasCaxpy_v2
        cublasCcopy_v2
        cublasCgemmBatched
        cublasCgemmStridedBatched
        cublasCgemm_v2
        cublasCgemv_v2
        cublasCgerc_v2
        cublasCgeru_v2
        cublasCgetrfBatched
        cublasChemm_v2
        cublasChemv_v2
        cublasCher2_v2
        cublasCher2k_v2
        cublasCher_v2
        cublasCherk_v2
        cublasCrot_v2
        cublasCrotg_v2
        cublasCscal_v2
        cublasCsrot_v2
        cublasCsscal_v2
        cublasCswap_v2
        cublasCsymm_v2
        cublasCsymv_v2
        cublasCsyr2_v2
        cublasCsyr2k_v2
        cublasCsyr_v2
        cublasCsyrk_v2
        cublasCtrmm_v2
        cublasCtrmv_v2
        cublasCtrsmBatched
        cublasCtrsm_v2
        cublasCtrsv_v2
        cublasDaxpy_v2
        cublasDcopy_v2
        cublasDgemmBatched
        cublasDgemmStridedBatched
        cublasDgemm_v2
        cublasDgemv_v2
        cublasDger_v2
        cublasDgetrfBatched
        cublasDrot_v2
        cublasDrotg_v2
        cublasDrotm_v2
        cublasDrotmg_v2
        cublasDscal_v2
        cublasDswap_v2
        cublasDsymm_v2
        cublasDsymv_v2
        cublasDsyr2_v2
        cublasDsyr2k_v2
        cublasDsyr_v2
        cublasDsyrk_v2
        cublasDtrmm_v2
        cublasDtrmv_v2
        cublasDtrsmBatched
        cublasDtrsm_v2
        cublasDtrsv_v2
        cublasGemmEx
        cublasGemmStridedBatchedEx
        cublasGetMatrixAsync
        cublasGetVectorAsync
        cublasSaxpy_v2
        cublasScopy_v2
        cublasSetMathMode
        cublasSetSmCountTarget
        cublasSetMatrixAsync
        cublasSetPointerMode_v2
        cublasSetStream_v2
        cublasSetVectorAsync
        cublasSetWorkspace_v2
        cublasSgemmBatched
        cublasSgemmEx
        cublasSgemmStridedBatched
        cublasSgemm_v2
        cublasSgemv_v2
        cublasSger_v2
        cublasSgetrfBatched
        cublasSrot_v2
        cublasSrotg_v2
        cublasSrotm_v2
        cublasSrotmg_v2
        cublasSscal_v2
        cublasSswap_v2
        cublasSsymm_v2
        cublasSsymv_v2
        cublasSsyr2_v2
        cublasSsyr2k_v2
        cublasSsyr_v2
        cublasSsyrk_v2
        cublasStrmm_v2
        cublasStrmv_v2
        cublasStrsmBatched
        cublasStrsm_v2
        cublasStrsv_v2
        cublasZaxpy_v2
        cublasZcopy_v2
        cublasZdrot_v2
        cublasZdscal_v2
        cublasZgemmBatched
        cublasZgemmStridedBatched
        cublasZgemm_v2
        cublasZgemv_v2
        cublasZgerc_v2
        cublasZgeru_v2
        cublasZgetrfBatched
        cublasZhemm_v2
        cublasZhemv_v2
        cublasZher2_v2
        cublasZher2k_v2
        cublasZher_v2
        cublasZherk_v2
        cublasZrot_v2
        cublasZrotg_v2
        cublasZscal_v2
        cublasZswap_v2
        cublasZsymm_v2
        cublasZsymv_v2
        cublasZsyr2_v2
        cublasZsyr2k_v2
        cublasZsyr_v2
        cublasZsyrk_v2
        cublasZtrmm_v2
        cublasZtrmv_v2
        cublasZtrsmBatched
        cublasZtrsm_v2
        cublasZtrsv_v2
    }
    refuses 15 {}
}
