//! NVRTC: nothing is compiled.

use std::ffi::c_char;

use crate::export::{Out, answers, stubs};

answers! {
    version "libnvrtc.so.13";
    /// The version.
    fn nvrtcVersion(major: Out<i32>, minor: Out<i32>) -> i32 {
        major.set(13);
        minor.set(0);
        0
    }

    /// What an error is called; it lives for ever.
    fn nvrtcGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated NVRTC" };
        text.as_ptr()
    }
}

stubs! {
    version "libnvrtc.so.13";
    computes {

    }
    refuses 11 {
        nvrtcAddNameExpression
        nvrtcCompileProgram
        nvrtcCreateProgram
        nvrtcDestroyProgram
        nvrtcGetCUBIN
        nvrtcGetCUBINSize
        nvrtcGetLoweredName
        nvrtcGetPTX
        nvrtcGetPTXSize
        nvrtcGetProgramLog
        nvrtcGetProgramLogSize
    }
}
