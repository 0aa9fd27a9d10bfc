//! cuSOLVER's dense decompositions: they succeed, say that nothing was wrong
//! with the matrix, and compute nothing. What they would have written (factors,
//! pivots, values) is left as it was.
//!
//! Workspaces are a model, since the library's manual names no formula: as many
//! elements as the matrices have, all on the device.
//!
//! `typed.rs` is the interface of one function a type, `generic.rs` that of one
//! function for all types, which counts with 64 bits.

mod generic;
mod typed;

use crate::export::{Out, answers, stubs};
use crate::object;

/// Makes functions of the same parameters.
macro_rules! alike {
    ([$($name:ident)*] $parameters:tt $body:block) => {
        $crate::export::answers! {
            versions ["libcusolver.so.12", "libcusolver.so.11"];
            $(
                fn $name $parameters -> i32 $body
            )*
        }
    };
}
use alike;

/// Answers the elements of a workspace: the product of these.
fn elements<const N: usize>(out: Out<i32>, sizes: [i32; N]) -> i32 {
    let product = sizes
        .into_iter()
        .fold(1, |product: i32, size| product.saturating_mul(size.max(0)));
    // Some programs take a workspace of nothing for an error.
    out.set(product.max(1));
    0
}

/// Says of each matrix that it could be decomposed: zero, on the device, whose
/// memory can be written here.
fn sound(info: Out<i32>, matrices: i32) -> i32 {
    for index in 0..usize::try_from(matrices).unwrap_or(0) {
        info.set_at(index, 0);
    }
    0
}

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

    /// Creates settings of the generic interface.
    fn cusolverDnCreateParams(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys them.
    fn cusolverDnDestroyParams(settings: usize) -> i32 {
        object::end(settings)
    }

    /// Creates settings of Jacobi's singular values.
    fn cusolverDnCreateGesvdjInfo(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys them.
    fn cusolverDnDestroyGesvdjInfo(settings: usize) -> i32 {
        object::end(settings)
    }

    /// Creates settings of Jacobi's eigenvalues.
    fn cusolverDnCreateSyevjInfo(out: Out<usize>) -> i32 {
        object::create(out)
    }

    /// Destroys them.
    fn cusolverDnDestroySyevjInfo(settings: usize) -> i32 {
        object::end(settings)
    }
}

stubs! {
    versions ["libcusolver.so.12", "libcusolver.so.11"];
    computes {
        cusolverDnSetStream
        cusolverDnXgesvdjSetMaxSweeps
        cusolverDnXgesvdjSetSortEig
        cusolverDnXgesvdjSetTolerance
        cusolverDnXsyevjSetSortEig
    }
    refuses 9 {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_as_large_as_the_matrices_and_never_nothing() {
        let size = |sizes: [i32; 3]| {
            let mut answer = -1;
            assert_eq!(elements(Out::to(&mut answer), sizes), 0);
            answer
        };
        assert_eq!(size([30, 20, 4]), 2400);
        assert_eq!(size([30, 0, 4]), 1);
        assert_eq!(size([1 << 20, 1 << 20, 4]), i32::MAX);
    }
}
