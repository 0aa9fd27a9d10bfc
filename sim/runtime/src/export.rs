//! How a function is exported, and how a call runs.

/// The version of a shared library's symbols: its own name.
#[cfg(not(any(twelve, archive)))]
macro_rules! version {
    () => {
        "libcudart.so.13"
    };
}
#[cfg(twelve)]
macro_rules! version {
    () => {
        "libcudart.so.12"
    };
}
#[cfg(not(archive))]
pub(crate) use version;

/// Exports functions of the runtime.
///
/// In a shared library the function bears a name of ours, and the assembler
/// gives that the public one in the version; in an archive it bears the public
/// name itself.
macro_rules! exported {
    ($(
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $answer:ty)? $body:block
    )*) => {$(
        #[cfg(not(archive))]
        core::arch::global_asm!(concat!(
            ".symver gpumem_sim_",
            stringify!($name),
            ", ",
            stringify!($name),
            "@@",
            $crate::export::version!()
        ));
        $(#[$doc])*
        #[cfg_attr(not(archive), unsafe(export_name = concat!("gpumem_sim_", stringify!($name))))]
        #[cfg_attr(archive, unsafe(no_mangle))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) $(-> $answer)? $body
    )*};
}
pub(crate) use exported;

/// Makes exported functions of rows.
///
/// `free` rows need no driver, `loaded` rows need it, and `current` rows also
/// make the thread's device current, which wakes its primary context. The first
/// name is that of the driver in the row's expression, whose value is the
/// answer.
macro_rules! api {
    () => {};
    (
        $(#[$doc:meta])*
        $mode:ident fn $name:ident($driver:tt $(, $arg:ident: $ty:ty)* $(,)?) = $body:expr;
        $($rest:tt)*
    ) => {
        $crate::export::exported! {
            $(#[$doc])*
            fn $name($($arg: $ty),*) -> i32 {
                // Some rows ask for nothing that is unsafe.
                #[allow(unused_unsafe)]
                $crate::driver::$mode(|$driver| {
                    // SAFETY: the parameters are the caller's, who vouches for
                    // them as the interface says; the driver asks for no more.
                    unsafe { $body }
                })
            }
        }
        $crate::export::api! { $($rest)* }
    };
}
pub(crate) use api;
