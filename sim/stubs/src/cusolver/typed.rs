//! Decompositions by the interface of one function a type (single, double, and
//! both complex), whose workspaces are counted in elements.

use super::{alike, elements, sound};
use crate::export::Out;

// Sizes of workspaces.

alike! {
    // QR.
    [
        cusolverDnSgeqrf_bufferSize
        cusolverDnDgeqrf_bufferSize
        cusolverDnCgeqrf_bufferSize
        cusolverDnZgeqrf_bufferSize
    ]
    (
        _handle: usize, m: i32, n: i32, _a: usize, _lda: i32, out: Out<i32>,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // Q of a QR.
    [
        cusolverDnSorgqr_bufferSize
        cusolverDnDorgqr_bufferSize
        cusolverDnCungqr_bufferSize
        cusolverDnZungqr_bufferSize
    ]
    (
        _handle: usize, m: i32, n: i32, _k: i32, _a: usize, _lda: i32, _tau: usize,
        out: Out<i32>,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // Product with such a Q.
    [
        cusolverDnSormqr_bufferSize
        cusolverDnDormqr_bufferSize
        cusolverDnCunmqr_bufferSize
        cusolverDnZunmqr_bufferSize
    ]
    (
        _handle: usize, _side: i32, _operation: i32, m: i32, n: i32, _k: i32, _a: usize,
        _lda: i32, _tau: usize, _c: usize, _ldc: i32, out: Out<i32>,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // LU.
    [
        cusolverDnSgetrf_bufferSize
        cusolverDnDgetrf_bufferSize
        cusolverDnCgetrf_bufferSize
        cusolverDnZgetrf_bufferSize
    ]
    (
        _handle: usize, m: i32, n: i32, _a: usize, _lda: i32, out: Out<i32>,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // Cholesky.
    [
        cusolverDnSpotrf_bufferSize
        cusolverDnDpotrf_bufferSize
        cusolverDnCpotrf_bufferSize
        cusolverDnZpotrf_bufferSize
    ]
    (
        _handle: usize, _part: i32, n: i32, _a: usize, _lda: i32, out: Out<i32>,
    ) {
        elements(out, [n, n])
    }
}

alike! {
    // Bunch and Kaufman's LDL.
    [
        cusolverDnSsytrf_bufferSize
        cusolverDnDsytrf_bufferSize
        cusolverDnCsytrf_bufferSize
        cusolverDnZsytrf_bufferSize
    ]
    (
        _handle: usize, n: i32, _a: usize, _lda: i32, out: Out<i32>,
    ) {
        elements(out, [n, n])
    }
}

alike! {
    // Singular values by QR.
    [
        cusolverDnSgesvd_bufferSize
        cusolverDnDgesvd_bufferSize
        cusolverDnCgesvd_bufferSize
        cusolverDnZgesvd_bufferSize
    ]
    (
        _handle: usize, m: i32, n: i32, out: Out<i32>,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // Singular values by Jacobi.
    [
        cusolverDnSgesvdj_bufferSize
        cusolverDnDgesvdj_bufferSize
        cusolverDnCgesvdj_bufferSize
        cusolverDnZgesvdj_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, _economic: i32, m: i32, n: i32, _a: usize, _lda: i32,
        _s: usize, _u: usize, _ldu: i32, _v: usize, _ldv: i32, out: Out<i32>,
        _settings: usize,
    ) {
        elements(out, [m, n])
    }
}

alike! {
    // Singular values by Jacobi of a batch.
    [
        cusolverDnSgesvdjBatched_bufferSize
        cusolverDnDgesvdjBatched_bufferSize
        cusolverDnCgesvdjBatched_bufferSize
        cusolverDnZgesvdjBatched_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, m: i32, n: i32, _a: usize, _lda: i32, _s: usize,
        _u: usize, _ldu: i32, _v: usize, _ldv: i32, out: Out<i32>, _settings: usize,
        batch: i32,
    ) {
        elements(out, [m, n, batch])
    }
}

alike! {
    // Singular values, approximate, of a batch.
    [
        cusolverDnSgesvdaStridedBatched_bufferSize
        cusolverDnDgesvdaStridedBatched_bufferSize
        cusolverDnCgesvdaStridedBatched_bufferSize
        cusolverDnZgesvdaStridedBatched_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, _rank: i32, m: i32, n: i32, _a: usize, _lda: i32,
        _a_step: i64, _s: usize, _s_step: i64, _u: usize, _ldu: i32, _u_step: i64,
        _v: usize, _ldv: i32, _v_step: i64, out: Out<i32>, batch: i32,
    ) {
        elements(out, [m, n, batch])
    }
}

alike! {
    // Eigenvalues.
    [
        cusolverDnSsyevd_bufferSize
        cusolverDnDsyevd_bufferSize
        cusolverDnCheevd_bufferSize
        cusolverDnZheevd_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, n: i32, _a: usize, _lda: i32, _w: usize,
        out: Out<i32>,
    ) {
        elements(out, [n, n])
    }
}

alike! {
    // Eigenvalues by Jacobi.
    [
        cusolverDnSsyevj_bufferSize
        cusolverDnDsyevj_bufferSize
        cusolverDnCheevj_bufferSize
        cusolverDnZheevj_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, n: i32, _a: usize, _lda: i32, _w: usize,
        out: Out<i32>, _settings: usize,
    ) {
        elements(out, [n, n])
    }
}

alike! {
    // Eigenvalues by Jacobi of a batch.
    [
        cusolverDnSsyevjBatched_bufferSize
        cusolverDnDsyevjBatched_bufferSize
        cusolverDnCheevjBatched_bufferSize
        cusolverDnZheevjBatched_bufferSize
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, n: i32, _a: usize, _lda: i32, _w: usize,
        out: Out<i32>, _settings: usize, batch: i32,
    ) {
        elements(out, [n, n, batch])
    }
}

// What would compute.

alike! {
    // QR.
    [
        cusolverDnSgeqrf
        cusolverDnDgeqrf
        cusolverDnCgeqrf
        cusolverDnZgeqrf
    ]
    (
        _handle: usize, _m: i32, _n: i32, _a: usize, _lda: i32, _tau: usize, _work: usize,
        _work_size: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Q of a QR.
    [
        cusolverDnSorgqr
        cusolverDnDorgqr
        cusolverDnCungqr
        cusolverDnZungqr
    ]
    (
        _handle: usize, _m: i32, _n: i32, _k: i32, _a: usize, _lda: i32, _tau: usize,
        _work: usize, _work_size: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Product with such a Q.
    [
        cusolverDnSormqr
        cusolverDnDormqr
        cusolverDnCunmqr
        cusolverDnZunmqr
    ]
    (
        _handle: usize, _side: i32, _operation: i32, _m: i32, _n: i32, _k: i32, _a: usize,
        _lda: i32, _tau: usize, _c: usize, _ldc: i32, _work: usize, _work_size: i32,
        info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // LU.
    [
        cusolverDnSgetrf
        cusolverDnDgetrf
        cusolverDnCgetrf
        cusolverDnZgetrf
    ]
    (
        _handle: usize, _m: i32, _n: i32, _a: usize, _lda: i32, _work: usize,
        _pivots: usize, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Solution by an LU.
    [
        cusolverDnSgetrs
        cusolverDnDgetrs
        cusolverDnCgetrs
        cusolverDnZgetrs
    ]
    (
        _handle: usize, _operation: i32, _n: i32, _right: i32, _a: usize, _lda: i32,
        _pivots: usize, _b: usize, _ldb: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Cholesky.
    [
        cusolverDnSpotrf
        cusolverDnDpotrf
        cusolverDnCpotrf
        cusolverDnZpotrf
    ]
    (
        _handle: usize, _part: i32, _n: i32, _a: usize, _lda: i32, _work: usize,
        _work_size: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Cholesky of a batch.
    [
        cusolverDnSpotrfBatched
        cusolverDnDpotrfBatched
        cusolverDnCpotrfBatched
        cusolverDnZpotrfBatched
    ]
    (
        _handle: usize, _part: i32, _n: i32, _a: usize, _lda: i32, info: Out<i32>,
        batch: i32,
    ) {
        sound(info, batch)
    }
}

alike! {
    // Solution by a Cholesky.
    [
        cusolverDnSpotrs
        cusolverDnDpotrs
        cusolverDnCpotrs
        cusolverDnZpotrs
    ]
    (
        _handle: usize, _part: i32, _n: i32, _right: i32, _a: usize, _lda: i32, _b: usize,
        _ldb: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Solutions by a batch of them: one number for all.
    [
        cusolverDnSpotrsBatched
        cusolverDnDpotrsBatched
        cusolverDnCpotrsBatched
        cusolverDnZpotrsBatched
    ]
    (
        _handle: usize, _part: i32, _n: i32, _right: i32, _a: usize, _lda: i32, _b: usize,
        _ldb: i32, info: Out<i32>, _batch: i32,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Bunch and Kaufman's LDL.
    [
        cusolverDnSsytrf
        cusolverDnDsytrf
        cusolverDnCsytrf
        cusolverDnZsytrf
    ]
    (
        _handle: usize, _part: i32, _n: i32, _a: usize, _lda: i32, _pivots: usize,
        _work: usize, _work_size: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Singular values by QR.
    [
        cusolverDnSgesvd
        cusolverDnDgesvd
        cusolverDnCgesvd
        cusolverDnZgesvd
    ]
    (
        _handle: usize, _u_vectors: i8, _v_vectors: i8, _m: i32, _n: i32, _a: usize,
        _lda: i32, _s: usize, _u: usize, _ldu: i32, _v: usize, _ldv: i32, _work: usize,
        _work_size: i32, _real_work: usize, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Singular values by Jacobi.
    [
        cusolverDnSgesvdj
        cusolverDnDgesvdj
        cusolverDnCgesvdj
        cusolverDnZgesvdj
    ]
    (
        _handle: usize, _vectors: i32, _economic: i32, _m: i32, _n: i32, _a: usize,
        _lda: i32, _s: usize, _u: usize, _ldu: i32, _v: usize, _ldv: i32, _work: usize,
        _work_size: i32, info: Out<i32>, _settings: usize,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Singular values by Jacobi of a batch.
    [
        cusolverDnSgesvdjBatched
        cusolverDnDgesvdjBatched
        cusolverDnCgesvdjBatched
        cusolverDnZgesvdjBatched
    ]
    (
        _handle: usize, _vectors: i32, _m: i32, _n: i32, _a: usize, _lda: i32, _s: usize,
        _u: usize, _ldu: i32, _v: usize, _ldv: i32, _work: usize, _work_size: i32,
        info: Out<i32>, _settings: usize, batch: i32,
    ) {
        sound(info, batch)
    }
}

alike! {
    // Singular values, approximate, of a batch, with the residuals' norms on the host.
    [
        cusolverDnSgesvdaStridedBatched
        cusolverDnDgesvdaStridedBatched
        cusolverDnCgesvdaStridedBatched
        cusolverDnZgesvdaStridedBatched
    ]
    (
        _handle: usize, _vectors: i32, _rank: i32, _m: i32, _n: i32, _a: usize, _lda: i32,
        _a_step: i64, _s: usize, _s_step: i64, _u: usize, _ldu: i32, _u_step: i64,
        _v: usize, _ldv: i32, _v_step: i64, _work: usize, _work_size: i32, info: Out<i32>,
        residuals: Out<f64>, batch: i32,
    ) {
        for index in 0..usize::try_from(batch).unwrap_or(0) {
            residuals.set_at(index, 0.0);
        }
        sound(info, batch)
    }
}

alike! {
    // Eigenvalues.
    [
        cusolverDnSsyevd
        cusolverDnDsyevd
        cusolverDnCheevd
        cusolverDnZheevd
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, _n: i32, _a: usize, _lda: i32, _w: usize,
        _work: usize, _work_size: i32, info: Out<i32>,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Eigenvalues by Jacobi.
    [
        cusolverDnSsyevj
        cusolverDnDsyevj
        cusolverDnCheevj
        cusolverDnZheevj
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, _n: i32, _a: usize, _lda: i32, _w: usize,
        _work: usize, _work_size: i32, info: Out<i32>, _settings: usize,
    ) {
        sound(info, 1)
    }
}

alike! {
    // Eigenvalues by Jacobi of a batch.
    [
        cusolverDnSsyevjBatched
        cusolverDnDsyevjBatched
        cusolverDnCheevjBatched
        cusolverDnZheevjBatched
    ]
    (
        _handle: usize, _vectors: i32, _part: i32, _n: i32, _a: usize, _lda: i32, _w: usize,
        _work: usize, _work_size: i32, info: Out<i32>, _settings: usize, batch: i32,
    ) {
        sound(info, batch)
    }
}
