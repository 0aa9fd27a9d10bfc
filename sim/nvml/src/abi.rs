//! What crosses the C boundary.

use std::ffi::{CStr, c_char};

/// `NVML_ERROR_INVALID_ARGUMENT`.
pub(crate) const INVALID_ARGUMENT: i32 = 2;
/// `NVML_ERROR_NOT_SUPPORTED`.
pub(crate) const NOT_SUPPORTED: i32 = 3;
/// `NVML_ERROR_NOT_FOUND`.
pub(crate) const NOT_FOUND: i32 = 6;
/// `NVML_ERROR_INSUFFICIENT_SIZE`.
pub(crate) const INSUFFICIENT_SIZE: i32 = 7;
/// `NVML_ERROR_DRIVER_NOT_LOADED`.
pub(crate) const DRIVER_NOT_LOADED: i32 = 9;

/// What a function ends with.
pub(crate) type Outcome<T = ()> = Result<T, i32>;

/// A parameter through which a function answers. It comes only from the caller
/// of an exported function, who vouches that it is NULL or may be written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    /// Answers `value`; NULL is an invalid argument.
    pub(crate) fn set(&self, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so the caller vouches that it may be written.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// The value at `index` of an array that the caller says is that long.
    pub(crate) fn set_at(&self, index: usize, value: T) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so the caller vouches for an array of that length.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// What the parameter holds; NULL is an invalid argument.
    pub(crate) fn get(&self) -> Outcome<T> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so the caller vouches that it is initialised.
        Ok(unsafe { self.0.read_unaligned() })
    }
}

impl Out<u8> {
    /// Answers text and a zero, if they fit into `room` bytes.
    pub(crate) fn set_text(&self, text: &str, room: u32) -> Outcome {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        if text.len() >= room as usize {
            return Err(INSUFFICIENT_SIZE);
        }
        // SAFETY: the caller vouches for `room` bytes, which is more.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr(), text.len());
            self.0.add(text.len()).write(0);
        }
        Ok(())
    }
}

/// A zero-ended text of the caller's, or NULL.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; NULL is an invalid argument.
    pub(crate) fn get(&self) -> Outcome<&str> {
        if self.0.is_null() {
            return Err(INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so the caller vouches for a zero-ended text.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| INVALID_ARGUMENT)
    }
}

/// The number that a function's body ends with.
pub(crate) fn number(body: impl FnOnce() -> Outcome) -> i32 {
    body().map_or_else(|code| code, |()| 0)
}

/// Makes exported functions whose bodies end with an outcome.
macro_rules! entry {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $body:block)*) => {$(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            $crate::abi::number(|| $body)
        }
    )*};
}
pub(crate) use entry;
