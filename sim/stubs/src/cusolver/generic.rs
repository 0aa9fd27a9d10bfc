//! Decompositions by the interface of one function for all types, whose
//! workspaces are counted in bytes, on the device and on the host.

use super::sound;
use crate::export::{Out, answers};

/// Bytes of an element of a `cudaDataType`.
fn element_bytes(kind: i32) -> usize {
    match kind {
        // Double, and complex of floats.
        1 | 4 => 8,
        // Complex of doubles.
        5 => 16,
        _ => 4,
    }
}

/// Answers the bytes of a workspace, which is as large as the matrices.
fn bytes<const N: usize>(
    (device, host): (Out<usize>, Out<usize>),
    kind: i32,
    sizes: [i64; N],
) -> i32 {
    let elements = sizes
        .into_iter()
        .map(|size| usize::try_from(size).unwrap_or(0))
        .fold(1, usize::saturating_mul);
    device.set(elements.saturating_mul(element_bytes(kind)));
    host.set(0);
    0
}

answers! {
    versions ["libcusolver.so.12", "libcusolver.so.11"];
    /// Workspace of QR.
    fn cusolverDnXgeqrf_bufferSize(
        _handle: usize, _settings: usize, m: i64, n: i64, kind: i32, _a: usize, _lda: i64,
        _tau_kind: i32, _tau: usize, _compute: i32, device: Out<usize>, host: Out<usize>,
    ) -> i32 {
        bytes((device, host), kind, [m, n])
    }

    /// QR.
    fn cusolverDnXgeqrf(
        _handle: usize, _settings: usize, _m: i64, _n: i64, _kind: i32, _a: usize, _lda: i64,
        _tau_kind: i32, _tau: usize, _compute: i32, _work: usize, _work_bytes: usize,
        _host_work: usize, _host_bytes: usize, info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }

    /// Workspace of Cholesky.
    fn cusolverDnXpotrf_bufferSize(
        _handle: usize, _settings: usize, _part: i32, n: i64, kind: i32, _a: usize, _lda: i64,
        _compute: i32, device: Out<usize>, host: Out<usize>,
    ) -> i32 {
        bytes((device, host), kind, [n, n])
    }

    /// Cholesky.
    fn cusolverDnXpotrf(
        _handle: usize, _settings: usize, _part: i32, _n: i64, _kind: i32, _a: usize, _lda: i64,
        _compute: i32, _work: usize, _work_bytes: usize, _host_work: usize, _host_bytes: usize,
        info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }

    /// Solution by a Cholesky.
    fn cusolverDnXpotrs(
        _handle: usize, _settings: usize, _part: i32, _n: i64, _right: i64, _kind: i32, _a: usize,
        _lda: i64, _b_kind: i32, _b: usize, _ldb: i64, info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }

    /// Workspace of a solution by Bunch and Kaufman's LDL.
    fn cusolverDnXsytrs_bufferSize(
        _handle: usize, _part: i32, n: i64, right: i64, kind: i32, _a: usize, _lda: i64,
        _pivots: usize, _b_kind: i32, _b: usize, _ldb: i64, device: Out<usize>, host: Out<usize>,
    ) -> i32 {
        bytes((device, host), kind, [n, right])
    }

    /// Solution by Bunch and Kaufman's LDL.
    fn cusolverDnXsytrs(
        _handle: usize, _part: i32, _n: i64, _right: i64, _kind: i32, _a: usize, _lda: i64,
        _pivots: usize, _b_kind: i32, _b: usize, _ldb: i64, _work: usize, _work_bytes: usize,
        _host_work: usize, _host_bytes: usize, info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }

    /// Workspace of eigenvalues.
    fn cusolverDnXsyevd_bufferSize(
        _handle: usize, _settings: usize, _vectors: i32, _part: i32, n: i64, kind: i32, _a: usize,
        _lda: i64, _w_kind: i32, _w: usize, _compute: i32, device: Out<usize>, host: Out<usize>,
    ) -> i32 {
        bytes((device, host), kind, [n, n])
    }

    /// Eigenvalues.
    fn cusolverDnXsyevd(
        _handle: usize, _settings: usize, _vectors: i32, _part: i32, _n: i64, _kind: i32,
        _a: usize, _lda: i64, _w_kind: i32, _w: usize, _compute: i32, _work: usize,
        _work_bytes: usize, _host_work: usize, _host_bytes: usize, info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }

    /// Workspace of eigenvalues of a batch.
    fn cusolverDnXsyevBatched_bufferSize(
        _handle: usize, _settings: usize, _vectors: i32, _part: i32, n: i64, kind: i32, _a: usize,
        _lda: i64, _w_kind: i32, _w: usize, _compute: i32, device: Out<usize>, host: Out<usize>,
        batch: i64,
    ) -> i32 {
        bytes((device, host), kind, [n, n, batch])
    }

    /// Eigenvalues of a batch.
    fn cusolverDnXsyevBatched(
        _handle: usize, _settings: usize, _vectors: i32, _part: i32, _n: i64, _kind: i32,
        _a: usize, _lda: i64, _w_kind: i32, _w: usize, _compute: i32, _work: usize,
        _work_bytes: usize, _host_work: usize, _host_bytes: usize, info: Out<i32>, batch: i64,
    ) -> i32 {
        sound(info, i32::try_from(batch).unwrap_or(0))
    }

    /// Workspace of eigenvalues of any matrix.
    fn cusolverDnXgeev_bufferSize(
        _handle: usize, _settings: usize, _left: i32, _right: i32, n: i64, kind: i32, _a: usize,
        _lda: i64, _w_kind: i32, _w: usize, _left_kind: i32, _vl: usize, _ldvl: i64,
        _right_kind: i32, _vr: usize, _ldvr: i64, _compute: i32, device: Out<usize>,
        host: Out<usize>,
    ) -> i32 {
        bytes((device, host), kind, [n, n])
    }

    /// Eigenvalues of any matrix.
    fn cusolverDnXgeev(
        _handle: usize, _settings: usize, _left: i32, _right: i32, _n: i64, _kind: i32, _a: usize,
        _lda: i64, _w_kind: i32, _w: usize, _left_kind: i32, _vl: usize, _ldvl: i64,
        _right_kind: i32, _vr: usize, _ldvr: i64, _compute: i32, _work: usize, _work_bytes: usize,
        _host_work: usize, _host_bytes: usize, info: Out<i32>,
    ) -> i32 {
        sound(info, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_as_large_as_the_matrices() {
        let (mut device, mut host) = (7, 7);
        let outs = (Out::to(&mut device), Out::to(&mut host));
        assert_eq!(bytes(outs, 5, [10, 20, 3]), 0);
        assert_eq!((device, host), (9600, 0));
    }
}
