//! cuSPARSELt: not simulated.

use crate::export::stubs;

stubs! {
    versions [];
    computes {}
    refuses 10 {
        cusparseLtDenseDescriptorInit
        cusparseLtInit
        cusparseLtMatDescriptorDestroy
        cusparseLtMatmul
        cusparseLtMatmulAlgGetAttribute
        cusparseLtMatmulAlgSelectionInit
        cusparseLtMatmulAlgSetAttribute
        cusparseLtMatmulDescSetAttribute
        cusparseLtMatmulDescriptorInit
        cusparseLtMatmulGetWorkspace
        cusparseLtMatmulPlanDestroy
        cusparseLtMatmulPlanInit
        cusparseLtMatmulSearch
        cusparseLtSpMMACompress2
        cusparseLtSpMMACompressedSize2
        cusparseLtStructuredDescriptorInit
    }
}
