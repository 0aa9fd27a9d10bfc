//! What crosses the C boundary: results, parameters by pointer, and the
//! driver's structures with plain integers where the headers have enums (any
//! bit pattern may come in, and a Rust enum may not hold every one).

use cudarc::driver::sys;

/// An error that the driver answers; never success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(i32);

/// What a function's body ends with.
pub(crate) type Outcome<T = ()> = Result<T, Status>;

impl Status {
    pub(crate) const INVALID_VALUE: Self = Self::of(sys::CUresult::CUDA_ERROR_INVALID_VALUE);
    pub(crate) const OUT_OF_MEMORY: Self = Self::of(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY);
    pub(crate) const NOT_INITIALIZED: Self = Self::of(sys::CUresult::CUDA_ERROR_NOT_INITIALIZED);
    pub(crate) const NO_DEVICE: Self = Self::of(sys::CUresult::CUDA_ERROR_NO_DEVICE);
    pub(crate) const INVALID_DEVICE: Self = Self::of(sys::CUresult::CUDA_ERROR_INVALID_DEVICE);
    pub(crate) const INVALID_CONTEXT: Self = Self::of(sys::CUresult::CUDA_ERROR_INVALID_CONTEXT);
    pub(crate) const PRIMARY_CONTEXT_ACTIVE: Self =
        Self::of(sys::CUresult::CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE);
    pub(crate) const CONTEXT_IS_DESTROYED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED);
    pub(crate) const INVALID_HANDLE: Self = Self::of(sys::CUresult::CUDA_ERROR_INVALID_HANDLE);
    pub(crate) const ILLEGAL_STATE: Self = Self::of(sys::CUresult::CUDA_ERROR_ILLEGAL_STATE);
    pub(crate) const NOT_READY: Self = Self::of(sys::CUresult::CUDA_ERROR_NOT_READY);
    pub(crate) const UNSUPPORTED_LIMIT: Self =
        Self::of(sys::CUresult::CUDA_ERROR_UNSUPPORTED_LIMIT);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    pub(crate) const STREAM_CAPTURE_INVALIDATED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    pub(crate) const STREAM_CAPTURE_UNMATCHED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    pub(crate) const STREAM_CAPTURE_ISOLATION: Self =
        Self::of(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self =
        Self::of(sys::CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    pub(crate) const CAPTURED_EVENT: Self = Self::of(sys::CUresult::CUDA_ERROR_CAPTURED_EVENT);
    pub(crate) const NOT_FOUND: Self = Self::of(sys::CUresult::CUDA_ERROR_NOT_FOUND);
    pub(crate) const ALREADY_REGISTERED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    pub(crate) const NOT_REGISTERED: Self =
        Self::of(sys::CUresult::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    pub(crate) const NOT_SUPPORTED: Self = Self::of(sys::CUresult::CUDA_ERROR_NOT_SUPPORTED);

    const fn of(result: sys::CUresult) -> Self {
        Self(result as i32)
    }

    /// An error by its number, for failures on demand. Zero is no error.
    pub(crate) fn from_code(code: i32) -> Option<Self> {
        (code != 0).then_some(Self(code))
    }

    /// The number that the program sees.
    pub(crate) const fn code(self) -> i32 {
        self.0
    }
}

/// A parameter through which a function answers.
///
/// There is no way to make one in this library: it comes from the caller of an
/// exported function, who vouches that it is NULL or may be written.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Fails with `INVALID_VALUE` when the caller gave NULL: asked before
    /// anything is changed.
    pub(crate) fn required(&self) -> Outcome {
        if self.0.is_null() {
            Err(Status::INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    /// Answers `value`; NULL is `INVALID_VALUE`.
    pub(crate) fn set(&self, value: T) -> Outcome {
        self.required()?;
        // SAFETY: not NULL, so the caller of the exported function vouches that
        // a `T` may be written here; unaligned, since C callers may cast.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// The value at `index` of an array that the caller says is that long.
    pub(crate) fn set_at(&self, index: usize, value: T) -> Outcome {
        self.required()?;
        // SAFETY: as in `set`, for an array of the stated length.
        unsafe { self.0.add(index).write_unaligned(value) };
        Ok(())
    }

    /// Answers `value` where the caller wants it; NULL is legal.
    pub(crate) fn set_if_wanted(&self, value: T) {
        // The only error is NULL, which here means "not wanted".
        let _ = self.set(value);
    }
}

impl<T: Plain> Out<T> {
    /// What a parameter that goes both ways holds; NULL is `INVALID_VALUE`.
    pub(crate) fn read(&self) -> Outcome<T> {
        In(self.0.cast_const()).read()
    }
}

// A copy of the caller's pointer is worth what the pointer is.
impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}
impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl Out<u8> {
    /// Writes `text` and a zero into a buffer of `length` bytes, cut to fit.
    pub(crate) fn set_text(&self, text: &str, length: i32) -> Outcome {
        self.required()?;
        let room = usize::try_from(length).map_err(|_| Status::INVALID_VALUE)?;
        let kept = text
            .len()
            .min(room.checked_sub(1).ok_or(Status::INVALID_VALUE)?);
        // SAFETY: the caller vouches for `length` writable bytes, and `kept`
        // and the zero after it lie within them.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr(), kept);
            self.0.add(kept).write(0);
        }
        Ok(())
    }
}

impl Out<std::ffi::c_void> {
    /// An answer whose type depends on another parameter.
    pub(crate) fn typed<T>(&self) -> Out<T> {
        Out(self.0.cast())
    }
}

/// Types of which every bit pattern is a value.
///
/// # Safety
/// The type is `Copy`, has no padding that matters and no invalid value.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: every bit pattern is an integer.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for usize {}
// SAFETY: bytes, each of which has any value.
unsafe impl<const N: usize> Plain for [u8; N] {}
// SAFETY: a pointer in an array of the caller's is a parameter like others: he
// vouches that it is NULL or may be used.
unsafe impl<T> Plain for In<T> {}
// SAFETY: as above.
unsafe impl<T> Plain for Out<T> {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}

/// A structure or an array that a function reads.
///
/// Like [`Out`], it comes only from a caller, who vouches that it is NULL or
/// may be read.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Plain> In<T> {
    /// The value; NULL is `INVALID_VALUE`.
    pub(crate) fn read(&self) -> Outcome<T> {
        self.read_at(0)
    }

    /// The value at `index` of an array that the caller says is that long.
    pub(crate) fn read_at(&self, index: usize) -> Outcome<T> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not NULL, so the caller of the exported function vouches that
        // the array is readable as far as its stated length; any bits are a `T`.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }
}

impl In<std::ffi::c_void> {
    /// A value whose type depends on another parameter.
    pub(crate) fn typed<T: Plain>(&self) -> In<T> {
        In(self.0.cast())
    }
}

impl In<std::ffi::c_char> {
    /// The zero-ended text; NULL is `INVALID_VALUE`.
    pub(crate) fn text(&self) -> Outcome<&str> {
        if self.0.is_null() {
            return Err(Status::INVALID_VALUE);
        }
        // SAFETY: not NULL, so the caller vouches for a zero-ended string that
        // lives through the call.
        let text = unsafe { std::ffi::CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Status::INVALID_VALUE)
    }
}

/// `CUmemLocation`: where memory lives.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Location {
    /// 1: a device; 2, 3, 4: the host.
    pub(crate) kind: i32,
    /// Device ordinal, or NUMA node.
    pub(crate) id: i32,
}

/// `CU_MEM_LOCATION_TYPE_DEVICE`.
pub(crate) const LOCATION_DEVICE: i32 = 1;
/// `CU_MEM_LOCATION_TYPE_HOST`.
pub(crate) const LOCATION_HOST: i32 = 2;
/// `CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT`, the last of the host's kinds.
pub(crate) const LOCATION_HOST_LAST: i32 = 4;

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, the one kind that every driver has.
pub(crate) const ALLOCATION_PINNED: u32 = 1;

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocationProp {
    pub(crate) kind: u32,
    pub(crate) handle_types: u32,
    pub(crate) location: Location,
    pub(crate) win32_metadata: u64,
    pub(crate) flags: [u8; 8],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessDesc {
    pub(crate) location: Location,
    /// 0: none, 1: read, 3: read and write.
    pub(crate) flags: u32,
}

/// `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolProps {
    pub(crate) kind: u32,
    pub(crate) handle_types: u32,
    pub(crate) location: Location,
    pub(crate) win32_security: u64,
    /// Most that the pool may reserve; 0: no limit but the device's.
    pub(crate) max_bytes: usize,
    pub(crate) usage: u16,
    pub(crate) reserved: [u8; 54],
}

// SAFETY: integers alone, without padding.
unsafe impl Plain for Location {}
// SAFETY: as above.
unsafe impl Plain for AllocationProp {}
// SAFETY: as above.
unsafe impl Plain for AccessDesc {}
// SAFETY: as above.
unsafe impl Plain for PoolProps {}

const _: () = {
    assert!(size_of::<Location>() == size_of::<sys::CUmemLocation>());
    assert!(size_of::<AllocationProp>() == size_of::<sys::CUmemAllocationProp>());
    assert!(size_of::<AccessDesc>() == size_of::<sys::CUmemAccessDesc>());
    assert!(size_of::<PoolProps>() == size_of::<sys::CUmemPoolProps>());
};
