//! cuSPARSE: handles alone; products of sparse matrices are not simulated.

use std::ffi::c_char;

use crate::export::{Out, answers, stubs};
use crate::object;

answers! {
    versions ["libcusparse.so.12"];
    /// Creates a handle.
    fn cusparseCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cusparseDestroy(handle: usize) -> i32 {
        object::end(handle)
    }

    /// A part of the version (`libraryPropertyType`): 12.7.0, which is not older
    /// than what programs of CUDA 12 and 13 are made for.
    fn cusparseGetProperty(part: i32, out: Out<i32>) -> i32 {
        /// `CUSPARSE_STATUS_INVALID_VALUE`.
        const INVALID_VALUE: i32 = 3;
        let value = match part {
            0 => 12,
            1 => 7,
            2 => 0,
            _ => return INVALID_VALUE,
        };
        out.set(value);
        0
    }

    /// What an error is called; it lives for ever.
    fn cusparseGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated cuSPARSE" };
        text.as_ptr()
    }
}

stubs! {
    versions ["libcusparse.so.12"];
    computes {
        cusparseSetPointerMode
        cusparseSetStream
    }
    refuses 10 {
        cusparseCbsrmm
        cusparseCbsrmv
        cusparseCbsrsm2_analysis
        cusparseCbsrsm2_bufferSize
        cusparseCbsrsm2_solve
        cusparseCbsrsv2_analysis
        cusparseCbsrsv2_bufferSize
        cusparseCbsrsv2_solve
        cusparseCcsrgeam2
        cusparseCcsrgeam2_bufferSizeExt
        cusparseCreateBsrsm2Info
        cusparseCreateBsrsv2Info
        cusparseCreateCoo
        cusparseCreateCsr
        cusparseCreateDnMat
        cusparseCreateDnVec
        cusparseCreateIdentityPermutation
        cusparseCreateMatDescr
        cusparseCsrSetPointers
        cusparseCsrSetStridedBatch
        cusparseDbsrmm
        cusparseDbsrmv
        cusparseDbsrsm2_analysis
        cusparseDbsrsm2_bufferSize
        cusparseDbsrsm2_solve
        cusparseDbsrsv2_analysis
        cusparseDbsrsv2_bufferSize
        cusparseDbsrsv2_solve
        cusparseDcsrgeam2
        cusparseDcsrgeam2_bufferSizeExt
        cusparseDestroyBsrsm2Info
        cusparseDestroyBsrsv2Info
        cusparseDestroyDnMat
        cusparseDestroyDnVec
        cusparseDestroyMatDescr
        cusparseDestroySpMat
        cusparseDnMatSetStridedBatch
        cusparseSDDMM
        cusparseSDDMM_bufferSize
        cusparseSDDMM_preprocess
        cusparseSbsrmm
        cusparseSbsrmv
        cusparseSbsrsm2_analysis
        cusparseSbsrsm2_bufferSize
        cusparseSbsrsm2_solve
        cusparseSbsrsv2_analysis
        cusparseSbsrsv2_bufferSize
        cusparseSbsrsv2_solve
        cusparseScsrgeam2
        cusparseScsrgeam2_bufferSizeExt
        cusparseSetMatDiagType
        cusparseSetMatFillMode
        cusparseSetMatIndexBase
        cusparseSetMatType
        cusparseSpGEMM_compute
        cusparseSpGEMM_copy
        cusparseSpGEMM_createDescr
        cusparseSpGEMM_destroyDescr
        cusparseSpGEMM_workEstimation
        cusparseSpMM
        cusparseSpMM_bufferSize
        cusparseSpMV
        cusparseSpMV_bufferSize
        cusparseSpMatGetSize
        cusparseSpMatSetAttribute
        cusparseSpSM_analysis
        cusparseSpSM_bufferSize
        cusparseSpSM_createDescr
        cusparseSpSM_destroyDescr
        cusparseSpSM_solve
        cusparseSpSV_analysis
        cusparseSpSV_bufferSize
        cusparseSpSV_createDescr
        cusparseSpSV_destroyDescr
        cusparseSpSV_solve
        cusparseXbsrsm2_zeroPivot
        cusparseXbsrsv2_zeroPivot
        cusparseXcoo2csr
        cusparseXcoosortByRow
        cusparseXcoosort_bufferSizeExt
        cusparseXcsrgeam2Nnz
        cusparseXcsrsort
        cusparseXcsrsort_bufferSizeExt
        cusparseZbsrmm
        cusparseZbsrmv
        cusparseZbsrsm2_analysis
        cusparseZbsrsm2_bufferSize
        cusparseZbsrsm2_solve
        cusparseZbsrsv2_analysis
        cusparseZbsrsv2_bufferSize
        cusparseZbsrsv2_solve
        cusparseZcsrgeam2
        cusparseZcsrgeam2_bufferSizeExt
    }
}
