//! NVTX as a library, which programs of version 12 load: marks that nobody
//! reads. Newer programs have it in themselves.

use crate::export::stubs;

stubs! {
    versions ["libnvToolsExt.so.1"];
    computes {
        nvtxMarkA
        nvtxRangeEnd
        nvtxRangePop
        nvtxRangePushA
        nvtxRangeStartA
    }
    refuses 0 {}
}
