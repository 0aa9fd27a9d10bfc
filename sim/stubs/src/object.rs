//! Objects that programs create, describe and hand back: handles, descriptors.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::export::Out;

/// What a handle stands for. The words are what it points to: some programs
/// read fields of what they created, and find zeros.
struct Object {
    _words: Box<[u64; 64]>,
    state: Option<Box<dyn Any + Send>>,
}

/// All objects, by handle. A handle that is not in it was never created, or is
/// destroyed.
fn objects() -> MutexGuard<'static, HashMap<usize, Object>> {
    static OBJECTS: LazyLock<Mutex<HashMap<usize, Object>>> = LazyLock::new(Mutex::default);
    OBJECTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates an object of which nothing is known yet; zero, success in all
/// libraries.
pub(crate) fn create(out: Out<usize>) -> i32 {
    out.set(add(None));
    0
}

/// Creates an object that is known; its handle.
pub(crate) fn create_with<T: Any + Send>(state: T) -> usize {
    add(Some(Box::new(state)))
}

fn add(state: Option<Box<dyn Any + Send>>) -> usize {
    let words = Box::new([0; 64]);
    let handle = std::ptr::from_ref(&*words) as usize;
    let object = Object {
        _words: words,
        state,
    };
    objects().insert(handle, object);
    handle
}

/// Destroys an object, and takes what was known of it.
pub(crate) fn destroy(handle: usize) -> Option<Box<dyn Any + Send>> {
    objects().remove(&handle)?.state
}

/// Destroys an object; zero, as all libraries answer also to NULL.
pub(crate) fn end(handle: usize) -> i32 {
    drop(destroy(handle));
    0
}

/// Says what an object is; `false` where there is none.
pub(crate) fn describe<T: Any + Send>(handle: usize, state: T) -> bool {
    let mut objects = objects();
    let object = objects.get_mut(&handle);
    object
        .map(|object| object.state = Some(Box::new(state)))
        .is_some()
}

/// Changes what is known of an object; what was not described begins as the
/// default.
pub(crate) fn update<T: Any + Send + Default>(handle: usize, change: impl FnOnce(&mut T)) -> bool {
    let mut objects = objects();
    let Some(object) = objects.get_mut(&handle) else {
        return false;
    };
    let state = object.state.get_or_insert_with(|| Box::<T>::default());
    state.downcast_mut().map(change).is_some()
}

/// Reads what is known of an object.
pub(crate) fn read<T: Any, R>(handle: usize, body: impl FnOnce(&T) -> R) -> Option<R> {
    let objects = objects();
    let state = objects.get(&handle)?.state.as_ref()?;
    state.downcast_ref().map(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_until_it_is_destroyed() {
        let handle = create_with(7_u32);
        assert_eq!(read(handle, |number: &u32| *number), Some(7));
        assert_eq!(
            read(handle, |text: &String| text.len()),
            None,
            "it is no text"
        );
        assert!(update(handle, |number: &mut u32| *number += 1));
        assert_eq!(read(handle, |number: &u32| *number), Some(8));
        assert!(describe(handle, String::from("four")));
        assert_eq!(read(handle, |text: &String| text.len()), Some(4));
        assert_eq!(end(handle), 0);
        assert_eq!(read(handle, |text: &String| text.len()), None);
        assert!(!describe(handle, 0_u32));
        assert_eq!(end(handle), 0, "again, and NULL, are no errors");
    }
}
