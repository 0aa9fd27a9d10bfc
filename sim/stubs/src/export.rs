//! How the functions of a library are made.

use std::sync::atomic::{AtomicBool, Ordering};

/// Names a function that is not simulated, the first time that it is called.
pub(crate) fn name_once(name: &str, named: &AtomicBool) {
    // Relaxed: at worst two threads name it.
    if !named.swap(true, Ordering::Relaxed) && std::env::var_os("GPUMEM_SIM_TRACE").is_some() {
        eprintln!("simulated libraries: {name} is not simulated");
    }
}

/// Gives a function its public name in a version.
macro_rules! version {
    ($version:literal $name:ident) => {
        core::arch::global_asm!(concat!(
            ".symver gpumem_sim_",
            stringify!($name),
            ", ",
            stringify!($name),
            "@@",
            $version
        ));
    };
}
pub(crate) use version;

/// Makes the functions of which there is nothing to say: `computes` succeed,
/// `refuses` answer a number that means "not supported". Their parameters do
/// not matter: the C conventions let the callee ignore them.
macro_rules! stubs {
    (
        version $version:literal;
        computes { $($done:ident)* }
        refuses $code:literal { $($refused:ident)* }
    ) => {
        $(
            $crate::export::version!($version $done);
            #[unsafe(export_name = concat!("gpumem_sim_", stringify!($done)))]
            extern "C" fn $done() -> i64 {
                0
            }
        )*
        $(
            $crate::export::version!($version $refused);
            #[unsafe(export_name = concat!("gpumem_sim_", stringify!($refused)))]
            extern "C" fn $refused() -> i64 {
                static NAMED: std::sync::atomic::AtomicBool =
                    std::sync::atomic::AtomicBool::new(false);
                $crate::export::name_once(stringify!($refused), &NAMED);
                $code
            }
        )*
    };
    (
        computes { $($done:ident)* }
        refuses $code:literal { $($refused:ident)* }
    ) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $done() -> i64 {
                0
            }
        )*
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $refused() -> i64 {
                static NAMED: std::sync::atomic::AtomicBool =
                    std::sync::atomic::AtomicBool::new(false);
                $crate::export::name_once(stringify!($refused), &NAMED);
                $code
            }
        )*
    };
}
pub(crate) use stubs;

/// Makes the functions that answer something. Their parameters are the
/// caller's, who vouches that each is NULL or may be used as its type says.
macro_rules! answers {
    (version $version:literal; $($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $answer:ty $body:block)*) => {
        $(
            $crate::export::version!($version $name);
            $(#[$doc])*
            #[unsafe(export_name = concat!("gpumem_sim_", stringify!($name)))]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $answer $body
        )*
    };
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $answer:ty $body:block)*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($arg: $ty),*) -> $answer $body
        )*
    };
}
pub(crate) use answers;

/// A parameter through which a function answers. It comes only from the caller
/// of an exported function, who vouches that it is NULL or may be written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

// A copy of the caller's pointer is worth what the pointer is.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Answers `value`, unless the caller gave NULL.
    pub(crate) fn set(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so the caller vouches that it may be written.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Answers an element of an array that the caller says is that long.
    pub(crate) fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: as above.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }

    /// The same place as another type.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }
}
