//! How the functions of a library are made.

/// Gives a function of ours its public name in the versions that programs ask
/// for; the first is the one of a look-up without a version.
macro_rules! version {
    ($name:ident as $public:ident: $version:literal $($older:literal)*) => {
        core::arch::global_asm!(
            concat!(
                ".symver gpumem_sim_", stringify!($name), ", ", stringify!($public), "@@", $version
            ),
            $(concat!(
                ".symver gpumem_sim_", stringify!($name), ", ", stringify!($public), "@", $older
            ),)*
        );
    };
    // The name in one version alone, which is the one of a look-up without.
    ($name:ident as $public:ident first $version:literal) => {
        $crate::export::version!($name as $public: $version);
    };
    // The name in one version alone, which is not.
    ($name:ident as $public:ident other $version:literal) => {
        core::arch::global_asm!(concat!(
            ".symver gpumem_sim_", stringify!($name), ", ", stringify!($public), "@", $version
        ));
    };
}
pub(crate) use version;

/// Makes the functions of which there is nothing to say: `computes` succeed,
/// `refuses` answer a number that means "not supported". Their parameters do
/// not matter: the C conventions let the callee ignore them.
macro_rules! stubs {
    (
        versions $versions:tt;
        computes { $($done:ident)* }
        refuses $code:literal { $($refused:ident)* }
    ) => {
        $crate::export::answers! {
            versions $versions;
            $(
                /// Succeeds.
                fn $done() -> i64 {
                    0
                }
            )*
            $(
                /// Not simulated.
                fn $refused() -> i64 {
                    static NAMED: std::sync::atomic::AtomicBool =
                        std::sync::atomic::AtomicBool::new(false);
                    $crate::log::name_once(stringify!($refused), &NAMED);
                    $code
                }
            )*
        }
    };
}
pub(crate) use stubs;

/// Makes the functions that answer something. Their parameters are the
/// caller's, who vouches that each is NULL or may be used as its type says.
///
/// `versions []` is of libraries whose symbols have none. `versions [first V]`
/// and `[other V]` are of functions that have their name in one version, where
/// another function has it in another: `fn inner as public`. A look-up without a
/// version finds the first.
macro_rules! answers {
    (
        versions $versions:tt;
        $(
            $(#[$doc:meta])*
            fn $name:ident $(as $public:ident)? ($($parameters:tt)*) -> $answer:ty $body:block
        )*
    ) => {$(
        $crate::export::answer! {
            $versions
            $(#[$doc])* fn $name $(as $public)? ($($parameters)*) -> $answer $body
        }
    )*};
}
pub(crate) use answers;

/// One function of `answers!`.
macro_rules! answer {
    (
        []
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $answer:ty $body:block
    ) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $answer $body
    };
    (
        [$which:ident $version:literal]
        $(#[$doc:meta])*
        fn $name:ident as $public:ident($($arg:ident: $ty:ty),* $(,)?) -> $answer:ty $body:block
    ) => {
        $crate::export::version!($name as $public $which $version);
        $(#[$doc])*
        #[unsafe(export_name = concat!("gpumem_sim_", stringify!($name)))]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $answer $body
    };
    (
        [$($version:literal),+]
        $(#[$doc:meta])*
        fn $name:ident($($arg:ident: $ty:ty),* $(,)?) -> $answer:ty $body:block
    ) => {
        $crate::export::version!($name as $name: $($version)+);
        $(#[$doc])*
        #[unsafe(export_name = concat!("gpumem_sim_", stringify!($name)))]
        unsafe extern "C" fn $name($($arg: $ty),*) -> $answer $body
    };
}
pub(crate) use answer;

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
    /// Answers into a place of ours.
    #[cfg(test)]
    pub(crate) fn to(place: &mut T) -> Self {
        Self(place)
    }

    /// Answers `value`, unless the caller gave NULL.
    pub(crate) fn set(self, value: T) {
        self.set_at(0, value);
    }

    /// Answers an element of an array that the caller says is that long.
    pub(crate) fn set_at(self, index: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: not NULL, so the caller vouches that it may be written.
            unsafe { self.0.add(index).write_unaligned(value) };
        }
    }

    /// The same place as another type.
    pub(crate) fn cast<U>(self) -> Out<U> {
        Out(self.0.cast())
    }

    /// What is there to be read: an array that the program filled before.
    pub(crate) fn input(self) -> In<T> {
        In(self.0)
    }
}

/// A parameter from which a function reads. It comes only from the caller of an
/// exported function, who vouches that it is NULL or may be read.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T> In<T> {
    /// The same place as another type.
    pub(crate) fn cast<U>(self) -> In<U> {
        In(self.0.cast())
    }
}

impl<T: Copy> In<T> {
    /// An element of an array that the caller says is that long; `None` of NULL.
    pub(crate) fn at(self, index: usize) -> Option<T> {
        // SAFETY: not NULL, so the caller vouches that it may be read.
        (!self.0.is_null()).then(|| unsafe { self.0.add(index).read_unaligned() })
    }

    /// All elements of an array that the caller says is that long.
    pub(crate) fn all(self, length: usize) -> Vec<T> {
        (0..length).map_while(|index| self.at(index)).collect()
    }
}
