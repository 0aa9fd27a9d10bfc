//! NVRTC: every program compiles, to code that is none. The simulated driver
//! reads no code: it takes whatever it is given for a module that has every
//! kernel.

use std::ffi::{CStr, CString, c_char};

use crate::export::{Out, answers, stubs};
use crate::object;

/// `NVRTC_ERROR_INVALID_PROGRAM`.
const INVALID_PROGRAM: i32 = 4;
/// What a program is compiled to; NVRTC's texts end with a zero.
const CODE: &[u8] = b"// simulated\0";

/// A program's names of kernels, which it may ask for as long as it lives.
#[derive(Default)]
struct Program {
    names: Vec<CString>,
}

/// Copies a result out.
fn give(program: usize, out: Out<u8>, bytes: &[u8]) -> i32 {
    if object::read(program, |_: &Program| ()).is_none() {
        return INVALID_PROGRAM;
    }
    for (index, byte) in bytes.iter().enumerate() {
        out.set_at(index, *byte);
    }
    0
}

/// The size of a result.
fn size(program: usize, out: Out<usize>, bytes: &[u8]) -> i32 {
    if object::read(program, |_: &Program| ()).is_none() {
        return INVALID_PROGRAM;
    }
    out.set(bytes.len());
    0
}

answers! {
    versions ["libnvrtc.so.13", "libnvrtc.so.12"];
    /// What an error is called; it lives for ever.
    fn nvrtcGetErrorString(status: i32) -> *const c_char {
        let text = if status == 0 { c"success" } else { c"not supported by the simulated NVRTC" };
        text.as_ptr()
    }

    /// A program; its text does not matter.
    fn nvrtcCreateProgram(out: Out<usize>) -> i32 {
        out.set(object::create_with(Program::default()));
        0
    }

    /// Ends a program.
    fn nvrtcDestroyProgram(program: Out<usize>) -> i32 {
        let handle = program.input().at(0).unwrap_or(0);
        program.set(0);
        if object::destroy(handle).is_some() { 0 } else { INVALID_PROGRAM }
    }

    /// The size of its assembly.
    fn nvrtcGetPTXSize(program: usize, out: Out<usize>) -> i32 {
        size(program, out, CODE)
    }

    /// Its assembly.
    fn nvrtcGetPTX(program: usize, out: Out<u8>) -> i32 {
        give(program, out, CODE)
    }

    /// The size of its code.
    fn nvrtcGetCUBINSize(program: usize, out: Out<usize>) -> i32 {
        size(program, out, CODE)
    }

    /// Its code.
    fn nvrtcGetCUBIN(program: usize, out: Out<u8>) -> i32 {
        give(program, out, CODE)
    }

    /// The size of what the compiler said: an empty text.
    fn nvrtcGetProgramLogSize(program: usize, out: Out<usize>) -> i32 {
        size(program, out, b"\0")
    }

    /// What the compiler said.
    fn nvrtcGetProgramLog(program: usize, out: Out<u8>) -> i32 {
        give(program, out, b"\0")
    }

    /// The name of a kernel in the code: the one that was asked for. It lives
    /// as long as the program.
    fn nvrtcGetLoweredName(
        program: usize, name: *const c_char, out: Out<*const c_char>
    ) -> i32 {
        if name.is_null() {
            return INVALID_PROGRAM;
        }
        // SAFETY: not NULL, so the caller vouches for a zero-ended name.
        let name = unsafe { CStr::from_ptr(name) }.to_owned();
        let known = object::update(program, |program: &mut Program| {
            let at = program.names.iter().position(|known| *known == name);
            let at = at.unwrap_or_else(|| {
                program.names.push(name);
                program.names.len() - 1
            });
            if let Some(name) = program.names.get(at) {
                out.set(name.as_ptr());
            }
        });
        if known { 0 } else { INVALID_PROGRAM }
    }
}

answers! {
    versions [first "libnvrtc.so.13"];
    /// The version.
    fn nvrtcVersion_13 as nvrtcVersion(major: Out<i32>, minor: Out<i32>) -> i32 {
        major.set(13);
        minor.set(0);
        0
    }
}
answers! {
    versions [other "libnvrtc.so.12"];
    /// The version that programs of 12 find.
    fn nvrtcVersion_12 as nvrtcVersion(major: Out<i32>, minor: Out<i32>) -> i32 {
        major.set(12);
        minor.set(8);
        0
    }
}

stubs! {
    versions ["libnvrtc.so.13", "libnvrtc.so.12"];
    computes {
        nvrtcAddNameExpression
        nvrtcCompileProgram
    }
    refuses 11 {}
}
