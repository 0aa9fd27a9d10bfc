//! The driver's functions, found by `dlsym`.

use std::ffi::{CStr, c_int, c_uint, c_void};

/// A location: kind (1: a device, 2: the host) and number.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Location {
    pub(crate) kind: c_int,
    pub(crate) id: c_int,
}

/// `CUmemAllocationProp`.
#[repr(C)]
pub(crate) struct AllocationProp {
    pub(crate) kind: c_uint,
    pub(crate) handle_types: c_uint,
    pub(crate) location: Location,
    pub(crate) metadata: u64,
    pub(crate) flags: u64,
}

/// `CUmemPoolProps`.
#[repr(C)]
pub(crate) struct PoolProps {
    pub(crate) kind: c_uint,
    pub(crate) handle_types: c_uint,
    pub(crate) location: Location,
    pub(crate) security: u64,
    pub(crate) max_bytes: usize,
    pub(crate) reserved: [u8; 56],
}

macro_rules! functions {
    ($($field:ident = $name:literal ($($type:ty),*);)*) => {
        /// The driver's functions; each gives its CUresult.
        pub(crate) struct Driver {
            $(pub(crate) $field: unsafe extern "C" fn($($type),*) -> u32,)*
        }

        impl Driver {
            /// Opens the driver and finds all functions.
            pub(crate) fn open() -> Self {
                // SAFETY: the name is a C string; the library stays open.
                let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW) };
                assert!(!library.is_null(), "no driver");
                Self {
                    $($field: {
                        let address = symbol(library, $name);
                        // SAFETY: the driver's function of that name has this signature.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> u32>(address)
                        }
                    },)*
                }
            }
        }
    };
}

fn symbol(library: *mut c_void, name: &CStr) -> *mut c_void {
    // SAFETY: an open library and a C string.
    let address = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert!(!address.is_null(), "the driver has no {name:?}");
    address
}

functions! {
    init = c"cuInit" (c_uint);
    set_context = c"cuCtxSetCurrent" (u64);
    pop_context = c"cuCtxPopCurrent_v2" (*mut u64);
    default_pool = c"cuDeviceGetDefaultMemPool" (*mut u64, c_int);
    retain_primary = c"cuDevicePrimaryCtxRetain" (*mut u64, c_int);
    release_primary = c"cuDevicePrimaryCtxRelease_v2" (c_int);
    create_context_v2 = c"cuCtxCreate_v2" (*mut u64, c_uint, c_int);
    create_context_v3 = c"cuCtxCreate_v3" (*mut u64, *mut c_void, c_int, c_uint, c_int);
    create_context_v4 = c"cuCtxCreate_v4" (*mut u64, *mut c_void, c_uint, c_int);
    destroy_context = c"cuCtxDestroy_v2" (u64);
    alloc = c"cuMemAlloc_v2" (*mut u64, usize);
    alloc_pitch = c"cuMemAllocPitch_v2" (*mut u64, *mut usize, usize, usize, c_uint);
    alloc_managed = c"cuMemAllocManaged" (*mut u64, usize, c_uint);
    free = c"cuMemFree_v2" (u64);
    alloc_host = c"cuMemHostAlloc" (*mut u64, usize, c_uint);
    alloc_host_plain = c"cuMemAllocHost_v2" (*mut u64, usize);
    free_host = c"cuMemFreeHost" (u64);
    register_host = c"cuMemHostRegister_v2" (*mut u8, usize, c_uint);
    unregister_host = c"cuMemHostUnregister" (*mut u8);
    alloc_async = c"cuMemAllocAsync" (*mut u64, usize, u64);
    alloc_async_ptsz = c"cuMemAllocAsync_ptsz" (*mut u64, usize, u64);
    alloc_from_pool = c"cuMemAllocFromPoolAsync" (*mut u64, usize, u64, u64);
    alloc_from_pool_ptsz = c"cuMemAllocFromPoolAsync_ptsz" (*mut u64, usize, u64, u64);
    free_async = c"cuMemFreeAsync" (u64, u64);
    free_async_ptsz = c"cuMemFreeAsync_ptsz" (u64, u64);
    create_pool = c"cuMemPoolCreate" (*mut u64, *const PoolProps);
    destroy_pool = c"cuMemPoolDestroy" (u64);
    trim_pool = c"cuMemPoolTrimTo" (u64, usize);
    create = c"cuMemCreate" (*mut u64, usize, *const AllocationProp, u64);
    release = c"cuMemRelease" (u64);
    retain = c"cuMemRetainAllocationHandle" (*mut u64, u64);
    reserve = c"cuMemAddressReserve" (*mut u64, usize, usize, u64, u64);
    unreserve = c"cuMemAddressFree" (u64, usize);
    map = c"cuMemMap" (u64, usize, usize, u64, u64);
    unmap = c"cuMemUnmap" (u64, usize);
}
