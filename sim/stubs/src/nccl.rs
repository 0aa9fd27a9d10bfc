//! NCCL: loads, and makes no communicator: programs of several ranks stop
//! with an error that says so.

use std::ffi::c_char;

use crate::export::{Out, answers, stubs};

answers! {
    /// The version.
    fn ncclGetVersion(out: Out<i32>) -> i32 {
        out.set(22_803);
        0
    }

    /// What an error is called; it lives for ever.
    fn ncclGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated NCCL" };
        text.as_ptr()
    }

    /// What the last error of a communicator was: an empty text.
    fn ncclGetLastError(_communicator: usize) -> *const c_char {
        c"".as_ptr()
    }
}

stubs! {
    computes {
        ncclGroupEnd
        ncclGroupStart
    }
    refuses 5 {
        ncclAllGather
        ncclAllReduce
        ncclAlltoAll
        ncclBcast
        ncclBroadcast
        ncclCommAbort
        ncclCommCount
        ncclCommDeregister
        ncclCommDestroy
        ncclCommFinalize
        ncclCommGetAsyncError
        ncclCommInitAll
        ncclCommInitRank
        ncclCommInitRankConfig
        ncclCommInitRankScalable
        ncclCommRegister
        ncclCommShrink
        ncclCommSplit
        ncclCommUserRank
        ncclCommWindowDeregister
        ncclCommWindowRegister
        ncclDevCommCreate
        ncclDevCommDestroy
        ncclGetUniqueId
        ncclGroupSimulateEnd
        ncclMemAlloc
        ncclMemFree
        ncclRecv
        ncclRedOpCreatePreMulSum
        ncclRedOpDestroy
        ncclReduce
        ncclReduceScatter
        ncclSend
    }
}
