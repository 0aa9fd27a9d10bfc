//! How a call enters: counted, failed on demand, then run on the machine.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::{Outcome, Status};
use crate::machine::{self, Machine};
use crate::notes;

/// What is known of one exported function.
pub(crate) struct Tally {
    pub(crate) symbol: &'static str,
    refused: bool,
    named: AtomicBool,
    calls: AtomicU64,
    errors: Mutex<BTreeMap<i32, u64>>,
}

impl Tally {
    pub(crate) const fn new(symbol: &'static str) -> Self {
        Self::of(symbol, false)
    }

    /// Of a function that is not simulated.
    pub(crate) const fn refused(symbol: &'static str) -> Self {
        Self::of(symbol, true)
    }

    const fn of(symbol: &'static str, refused: bool) -> Self {
        Self {
            symbol,
            refused,
            named: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            errors: Mutex::new(BTreeMap::new()),
        }
    }

    /// The function is not simulated.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused
    }

    /// Says in the log, once, what a program does not get of this function.
    pub(crate) fn name_once(&self, what: &str) {
        // Relaxed: whoever is first, the line is the same.
        if !self.named.swap(true, Ordering::Relaxed) {
            crate::log::line(&format!("{} {what}", self.symbol));
            notes::write();
        }
    }

    /// Calls up to now.
    pub(crate) fn calls(&self) -> u64 {
        // Relaxed: a number of its own, which orders nothing.
        self.calls.load(Ordering::Relaxed)
    }

    /// Errors returned up to now: code and how often.
    pub(crate) fn errors(&self) -> BTreeMap<i32, u64> {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Counts a call, and fails it if this is the one that must fail.
    fn begin(&self) -> Outcome {
        // Relaxed: each call gets its own number, which orders nothing else.
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        for failure in &crate::config::get().failures {
            if failure.call == call && failure.symbol == self.symbol {
                return Err(failure.status);
            }
        }
        Ok(())
    }

    fn end(&self, outcome: Outcome) -> i32 {
        match outcome {
            Ok(()) => 0,
            Err(status) => {
                let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
                *errors.entry(status.code()).or_default() += 1;
                status.code()
            }
        }
    }
}

/// Runs a function that needs the machine, and `cuInit` before it; then what it
/// has the program called for.
pub(crate) fn run(tally: &Tally, body: impl FnOnce(&mut Machine) -> Outcome) -> i32 {
    let outcome = tally.begin().and_then(|()| {
        // A driver does not survive a fork; and the lock may have been held.
        if machine::forked() {
            return Err(Status::NOT_INITIALIZED);
        }
        let mut machine = machine::lock();
        if !machine.initialised {
            return Err(Status::NOT_INITIALIZED);
        }
        let outcome = body(&mut machine);
        let host_calls = std::mem::take(&mut machine.host_calls);
        let small_copy = machine.small_copy.take();
        drop(machine);
        notes::after_call(&outcome, small_copy);
        for call in host_calls {
            call.run();
        }
        outcome
    });
    tally.end(outcome)
}

/// Runs a function that works without the machine: before `cuInit`, and in a
/// forked child.
pub(crate) fn run_free(tally: &Tally, body: impl FnOnce() -> Outcome) -> i32 {
    tally.end(tally.begin().and_then(|()| body()))
}

/// Answers for a function that is not simulated; its first call is logged.
pub(crate) fn refuse(tally: &Tally) -> i32 {
    run_free(tally, || {
        tally.name_once("is not simulated");
        Err(Status::NOT_SUPPORTED)
    })
}

/// Makes exported functions.
///
/// `fn name(machine; parameters) body` runs `body` on the locked machine;
/// `fn name | name_ptsz(machine, default; ...)` makes two functions, which
/// differ in what the null stream means; `free fn name(...)` needs no machine.
/// Each gets a tally, `name::TALLY`.
macro_rules! entry {
    () => {};
    (
        $(#[$doc:meta])*
        fn $symbol:ident($machine:tt; $($arg:ident: $ty:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        pub(crate) mod $symbol {
            pub(crate) static TALLY: $crate::entry::Tally =
                $crate::entry::Tally::new(stringify!($symbol));
        }
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol($($arg: $ty),*) -> i32 {
            $crate::entry::run(&$symbol::TALLY, |$machine| $body)
        }
        $crate::entry::entry! { $($rest)* }
    };
    (
        $(#[$doc:meta])*
        fn $legacy:ident | $per_thread:ident($machine:tt, $default:tt; $($arg:ident: $ty:ty),* $(,)?)
        $body:block
        $($rest:tt)*
    ) => {
        $crate::entry::entry! {
            $(#[$doc])*
            fn $legacy(machine; $($arg: $ty),*) {
                let $machine = machine;
                let $default = $crate::stream::DefaultStream::Legacy;
                $body
            }
            $(#[$doc])*
            fn $per_thread(machine; $($arg: $ty),*) {
                let $machine = machine;
                let $default = $crate::stream::DefaultStream::PerThread;
                $body
            }
            $($rest)*
        }
    };
    (
        $(#[$doc:meta])*
        free fn $symbol:ident($($arg:ident: $ty:ty),* $(,)?) $body:block
        $($rest:tt)*
    ) => {
        pub(crate) mod $symbol {
            pub(crate) static TALLY: $crate::entry::Tally =
                $crate::entry::Tally::new(stringify!($symbol));
        }
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $symbol($($arg: $ty),*) -> i32 {
            $crate::entry::run_free(&$symbol::TALLY, || $body)
        }
        $crate::entry::entry! { $($rest)* }
    };
}
pub(crate) use entry;
