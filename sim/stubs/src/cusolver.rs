//! cuSOLVER: handles alone; decompositions are not simulated.

use crate::export::{Out, answers, stubs};
use crate::object;

answers! {
    versions ["libcusolver.so.12", "libcusolver.so.11"];
    /// Creates a handle.
    fn cusolverDnCreate(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys it.
    fn cusolverDnDestroy(handle: usize) -> i32 {
        object::end(handle)
    }
}

stubs! {
    versions ["libcusolver.so.12", "libcusolver.so.11"];
    computes {
        cusolverDnSetStream
    }
    refuses 9 {
        cusolverDnCgeqrf
        cusolverDnCgeqrf_bufferSize
        cusolverDnCgesvd
        cusolverDnCgesvd_bufferSize
        cusolverDnCgesvdaStridedBatched
        cusolverDnCgesvdaStridedBatched_bufferSize
        cusolverDnCgesvdj
        cusolverDnCgesvdjBatched
        cusolverDnCgesvdjBatched_bufferSize
        cusolverDnCgesvdj_bufferSize
        cusolverDnCgetrf
        cusolverDnCgetrf_bufferSize
        cusolverDnCgetrs
        cusolverDnCheevd
        cusolverDnCheevd_bufferSize
        cusolverDnCheevj
        cusolverDnCheevjBatched
        cusolverDnCheevjBatched_bufferSize
        cusolverDnCheevj_bufferSize
        cusolverDnCpotrf
        cusolverDnCpotrfBatched
        cusolverDnCpotrf_bufferSize
        cusolverDnCpotrs
        cusolverDnCpotrsBatched
        cusolverDnCreateGesvdjInfo
        cusolverDnCreateParams
        cusolverDnCreateSyevjInfo
        cusolverDnCsytrf
        cusolverDnCsytrf_bufferSize
        cusolverDnCungqr
        cusolverDnCungqr_bufferSize
        cusolverDnCunmqr
        cusolverDnCunmqr_bufferSize
        cusolverDnDestroyGesvdjInfo
        cusolverDnDestroyParams
        cusolverDnDestroySyevjInfo
        cusolverDnDgeqrf
        cusolverDnDgeqrf_bufferSize
        cusolverDnDgesvd
        cusolverDnDgesvd_bufferSize
        cusolverDnDgesvdaStridedBatched
        cusolverDnDgesvdaStridedBatched_bufferSize
        cusolverDnDgesvdj
        cusolverDnDgesvdjBatched
        cusolverDnDgesvdjBatched_bufferSize
        cusolverDnDgesvdj_bufferSize
        cusolverDnDgetrf
        cusolverDnDgetrf_bufferSize
        cusolverDnDgetrs
        cusolverDnDorgqr
        cusolverDnDorgqr_bufferSize
        cusolverDnDormqr
        cusolverDnDormqr_bufferSize
        cusolverDnDpotrf
        cusolverDnDpotrfBatched
        cusolverDnDpotrf_bufferSize
        cusolverDnDpotrs
        cusolverDnDpotrsBatched
        cusolverDnDsyevd
        cusolverDnDsyevd_bufferSize
        cusolverDnDsyevj
        cusolverDnDsyevjBatched
        cusolverDnDsyevjBatched_bufferSize
        cusolverDnDsyevj_bufferSize
        cusolverDnDsytrf
        cusolverDnDsytrf_bufferSize
        cusolverDnSgeqrf
        cusolverDnSgeqrf_bufferSize
        cusolverDnSgesvd
        cusolverDnSgesvd_bufferSize
        cusolverDnSgesvdaStridedBatched
        cusolverDnSgesvdaStridedBatched_bufferSize
        cusolverDnSgesvdj
        cusolverDnSgesvdjBatched
        cusolverDnSgesvdjBatched_bufferSize
        cusolverDnSgesvdj_bufferSize
        cusolverDnSgetrf
        cusolverDnSgetrf_bufferSize
        cusolverDnSgetrs
        cusolverDnSorgqr
        cusolverDnSorgqr_bufferSize
        cusolverDnSormqr
        cusolverDnSormqr_bufferSize
        cusolverDnSpotrf
        cusolverDnSpotrfBatched
        cusolverDnSpotrf_bufferSize
        cusolverDnSpotrs
        cusolverDnSpotrsBatched
        cusolverDnSsyevd
        cusolverDnSsyevd_bufferSize
        cusolverDnSsyevj
        cusolverDnSsyevjBatched
        cusolverDnSsyevjBatched_bufferSize
        cusolverDnSsyevj_bufferSize
        cusolverDnSsytrf
        cusolverDnSsytrf_bufferSize
        cusolverDnXgeev
        cusolverDnXgeev_bufferSize
        cusolverDnXgeqrf
        cusolverDnXgeqrf_bufferSize
        cusolverDnXgesvdjSetMaxSweeps
        cusolverDnXgesvdjSetSortEig
        cusolverDnXgesvdjSetTolerance
        cusolverDnXpotrf
        cusolverDnXpotrf_bufferSize
        cusolverDnXpotrs
        cusolverDnXsyevBatched
        cusolverDnXsyevBatched_bufferSize
        cusolverDnXsyevd
        cusolverDnXsyevd_bufferSize
        cusolverDnXsyevjSetSortEig
        cusolverDnXsytrs
        cusolverDnXsytrs_bufferSize
        cusolverDnZgeqrf
        cusolverDnZgeqrf_bufferSize
        cusolverDnZgesvd
        cusolverDnZgesvd_bufferSize
        cusolverDnZgesvdaStridedBatched
        cusolverDnZgesvdaStridedBatched_bufferSize
        cusolverDnZgesvdj
        cusolverDnZgesvdjBatched
        cusolverDnZgesvdjBatched_bufferSize
        cusolverDnZgesvdj_bufferSize
        cusolverDnZgetrf
        cusolverDnZgetrf_bufferSize
        cusolverDnZgetrs
        cusolverDnZheevd
        cusolverDnZheevd_bufferSize
        cusolverDnZheevj
        cusolverDnZheevjBatched
        cusolverDnZheevjBatched_bufferSize
        cusolverDnZheevj_bufferSize
        cusolverDnZpotrf
        cusolverDnZpotrfBatched
        cusolverDnZpotrf_bufferSize
        cusolverDnZpotrs
        cusolverDnZpotrsBatched
        cusolverDnZsytrf
        cusolverDnZsytrf_bufferSize
        cusolverDnZungqr
        cusolverDnZungqr_bufferSize
        cusolverDnZunmqr
        cusolverDnZunmqr_bufferSize
    }
}
