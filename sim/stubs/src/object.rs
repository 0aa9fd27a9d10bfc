//! Objects that programs create and only hand back: handles, descriptors.

use crate::export::Out;

/// Zeroed words, since some headers read fields of what they create.
struct Object {
    _words: [u64; 64],
}

/// Creates an object. It is never given back: programs create few, and most
/// keep them to their end.
pub(crate) fn create(out: Out<usize>) -> i32 {
    let object = Box::leak(Box::new(Object { _words: [0; 64] }));
    out.set(std::ptr::from_mut(object) as usize);
    0
}
