//! Functions of the public interface that are not simulated: each is there,
//! answers `NOT_SUPPORTED` and is named once in the log.

/// Makes the function of a table row whose home is `refused`; the others are
/// made where they are at home.
macro_rules! refused {
    (refused $symbol:ident) => {
        pub(crate) mod $symbol {
            pub(crate) static TALLY: crate::entry::Tally =
                crate::entry::Tally::refused(stringify!($symbol));
        }
        // Whatever the parameters are: the C conventions let the callee ignore
        // them.
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $symbol() -> i32 {
            crate::entry::refuse(&$symbol::TALLY)
        }
    };
    ($home:ident $symbol:ident) => {};
}

macro_rules! refuse_rows {
    ($($name:literal $version:literal $variant:ident $home:ident $symbol:ident;)*) => {
        $(refused! { $home $symbol })*
    };
}

crate::table::each_function! { refuse_rows }
