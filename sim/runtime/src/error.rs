//! Errors: the thread's last one, and what they are called.

use std::cell::Cell;
use std::ffi::{CStr, c_char};

use crate::export::{api, exported};

/// What a call ends with; the numbers are the driver's, which the runtime
/// shares.
pub(crate) type Outcome<T = ()> = Result<T, i32>;

/// `cudaErrorInvalidValue`.
pub(crate) const INVALID_VALUE: i32 = 1;
/// `cudaErrorInvalidSymbol`.
pub(crate) const INVALID_SYMBOL: i32 = 13;
/// `cudaErrorInsufficientDriver`: there is none.
pub(crate) const NO_DRIVER: i32 = 35;
/// `cudaErrorInvalidDeviceFunction`.
pub(crate) const INVALID_DEVICE_FUNCTION: i32 = 98;
/// `cudaErrorNoDevice`.
pub(crate) const NO_DEVICE: i32 = 100;
/// `cudaErrorInvalidDevice`.
pub(crate) const INVALID_DEVICE: i32 = 101;
/// `cudaErrorSymbolNotFound`.
pub(crate) const NOT_FOUND: i32 = 500;
/// `cudaErrorNotSupported`.
pub(crate) const NOT_SUPPORTED: i32 = 801;

std::thread_local! {
    static LAST: Cell<i32> = const { Cell::new(0) };
}

/// The number of an outcome; an error is the thread's last one from now on.
pub(crate) fn number(outcome: Outcome) -> i32 {
    match outcome {
        Ok(()) => 0,
        Err(code) => {
            LAST.set(code);
            code
        }
    }
}

/// Name and text of an error, the wording our own.
fn describe(code: i32) -> (&'static CStr, &'static CStr) {
    match code {
        0 => (c"cudaSuccess", c"no error"),
        1 => (c"cudaErrorInvalidValue", c"invalid argument"),
        2 => (c"cudaErrorMemoryAllocation", c"out of memory"),
        3 => (c"cudaErrorInitializationError", c"initialization error"),
        4 => (c"cudaErrorCudartUnloading", c"the driver is shutting down"),
        9 => (
            c"cudaErrorInvalidConfiguration",
            c"invalid launch configuration",
        ),
        13 => (c"cudaErrorInvalidSymbol", c"no such variable"),
        35 => (
            c"cudaErrorInsufficientDriver",
            c"no driver, or too old a one",
        ),
        98 => (c"cudaErrorInvalidDeviceFunction", c"no such kernel"),
        100 => (c"cudaErrorNoDevice", c"no device"),
        101 => (c"cudaErrorInvalidDevice", c"invalid device ordinal"),
        201 => (c"cudaErrorDeviceUninitialized", c"invalid device context"),
        215 => (c"cudaErrorUnsupportedLimit", c"there is no such limit"),
        400 => (
            c"cudaErrorInvalidResourceHandle",
            c"invalid resource handle",
        ),
        401 => (c"cudaErrorIllegalState", c"not in this state"),
        500 => (c"cudaErrorSymbolNotFound", c"not found"),
        600 => (c"cudaErrorNotReady", c"not ready"),
        700 => (c"cudaErrorIllegalAddress", c"illegal memory access"),
        704 => (
            c"cudaErrorPeerAccessAlreadyEnabled",
            c"peers see each other already",
        ),
        709 => (c"cudaErrorContextIsDestroyed", c"the context is destroyed"),
        712 => (
            c"cudaErrorHostMemoryAlreadyRegistered",
            c"the memory is registered already",
        ),
        713 => (
            c"cudaErrorHostMemoryNotRegistered",
            c"the memory is not registered",
        ),
        719 => (c"cudaErrorLaunchFailure", c"a launch failed"),
        801 => (
            c"cudaErrorNotSupported",
            c"not supported by the simulated runtime",
        ),
        900 => (
            c"cudaErrorStreamCaptureUnsupported",
            c"not while the stream is captured",
        ),
        901 => (
            c"cudaErrorStreamCaptureInvalidated",
            c"the capture is not valid any more",
        ),
        903 => (
            c"cudaErrorStreamCaptureUnmatched",
            c"the capture began on another stream",
        ),
        905 => (
            c"cudaErrorStreamCaptureIsolation",
            c"the capture would wait for what is not in it",
        ),
        906 => (
            c"cudaErrorStreamCaptureImplicit",
            c"a default stream cannot join a capture",
        ),
        907 => (c"cudaErrorCapturedEvent", c"the event is part of a capture"),
        _ => (c"cudaErrorUnknown", c"unknown error"),
    }
}

api! {
    /// Drops the thread's last error, which does not count as a new one.
    query fn cudaGetLastError(_) = LAST.replace(0);

    /// The thread's last error.
    query fn cudaPeekAtLastError(_) = LAST.get();
}

exported! {
    /// An error's constant.
    fn cudaGetErrorName(code: i32) -> *const c_char {
        describe(code).0.as_ptr()
    }

    /// An error's text.
    fn cudaGetErrorString(code: i32) -> *const c_char {
        describe(code).1.as_ptr()
    }
}
