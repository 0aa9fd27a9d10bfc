//! How a function is exported, and how a call runs.

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
        $crate::export::versions!($name);
        $(#[$doc])*
        #[unsafe(export_name = concat!("gpumem_sim_", stringify!($name)))]
        pub(crate) unsafe extern "C" fn $name($($arg: $ty),*) -> i32 {
            // Some rows ask for nothing that is unsafe.
            #[allow(unused_unsafe)]
            $crate::driver::$mode(|$driver| {
                // SAFETY: the parameters are the caller's, who vouches for them
                // as the interface says; the driver asks for no more.
                unsafe { $body }
            })
        }
        $crate::export::api! { $($rest)* }
    };
}
pub(crate) use api;

/// Gives a function its public name in both versions.
macro_rules! versions {
    ($name:ident) => {
        core::arch::global_asm!(
            concat!(
                ".symver gpumem_sim_",
                stringify!($name),
                ", ",
                stringify!($name),
                "@@libcudart.so.13"
            ),
            concat!(
                ".symver gpumem_sim_",
                stringify!($name),
                ", ",
                stringify!($name),
                "@libcudart.so.12"
            ),
        );
    };
}
pub(crate) use versions;
