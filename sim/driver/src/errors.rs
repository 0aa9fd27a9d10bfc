//! Names and texts of the driver's errors.

use std::ffi::CStr;

use cudarc::driver::sys::CUresult;

use crate::abi::{Out, Outcome, Status};
use crate::entry::entry;

/// One row an error: its constant and its text, the wording our own.
macro_rules! texts {
    ($($name:ident: $text:literal),* $(,)?) => {
        fn look_up(code: i32) -> Option<(&'static CStr, &'static CStr)> {
            $(
                if code == CUresult::$name as i32 {
                    const NAME: &str = concat!(stringify!($name), "\0");
                    const TEXT: &str = concat!($text, "\0");
                    return Some((
                        CStr::from_bytes_until_nul(NAME.as_bytes()).ok()?,
                        CStr::from_bytes_until_nul(TEXT.as_bytes()).ok()?,
                    ));
                }
            )*
            None
        }
    };
}

texts! {
    CUDA_SUCCESS: "no error",
    CUDA_ERROR_INVALID_VALUE: "invalid argument",
    CUDA_ERROR_OUT_OF_MEMORY: "out of memory",
    CUDA_ERROR_NOT_INITIALIZED: "the driver is not initialised",
    CUDA_ERROR_DEINITIALIZED: "the driver is shutting down",
    CUDA_ERROR_NO_DEVICE: "no device",
    CUDA_ERROR_INVALID_DEVICE: "invalid device ordinal",
    CUDA_ERROR_INVALID_IMAGE: "invalid device image",
    CUDA_ERROR_INVALID_CONTEXT: "invalid context, or none is current",
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE: "the primary context is active",
    CUDA_ERROR_CONTEXT_IS_DESTROYED: "the context is destroyed",
    CUDA_ERROR_INVALID_HANDLE: "invalid handle",
    CUDA_ERROR_UNSUPPORTED_LIMIT: "there is no such limit",
    CUDA_ERROR_ILLEGAL_STATE: "not in this state",
    CUDA_ERROR_NOT_FOUND: "not found",
    CUDA_ERROR_NOT_READY: "not ready",
    CUDA_ERROR_ILLEGAL_ADDRESS: "illegal memory access",
    CUDA_ERROR_LAUNCH_FAILED: "a launch failed",
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: "the host memory is registered already",
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED: "the host memory is not registered",
    CUDA_ERROR_NOT_SUPPORTED: "not supported",
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: "not while the stream is captured",
    CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: "the capture is not valid any more",
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED: "the capture began on another stream",
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION: "the capture would wait for what is not in it",
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT: "a default stream cannot join a capture",
    CUDA_ERROR_CAPTURED_EVENT: "the event is part of a capture",
    CUDA_ERROR_UNKNOWN: "unknown error",
}

/// Answers one of the two texts; NULL and `INVALID_VALUE` for an unknown code.
fn answer(out: &Out<u64>, text: Option<&'static CStr>) -> Outcome {
    out.set(text.map_or(0, |text| text.as_ptr() as u64))?;
    if text.is_some() {
        Ok(())
    } else {
        Err(Status::INVALID_VALUE)
    }
}

entry! {
    /// The constant's name, which lives for ever.
    free fn cuGetErrorName(code: i32, out: Out<u64>) {
        answer(&out, look_up(code).map(|(name, _)| name))
    }

    /// A sentence, which lives for ever.
    free fn cuGetErrorString(code: i32, out: Out<u64>) {
        answer(&out, look_up(code).map(|(_, text)| text))
    }
}
