//! The hook table: one row for each driver function that is watched.
//!
//! `name(arguments) => handler;` makes the exported function of that name, its route entry and, where cudarc declares the
//! function, a check at compile time that the signature is cudarc's. `name + name_ptsz` makes two functions: the legacy and the
//! per-thread variant are different pointers in the driver and must stay so here. Rows marked `undeclared` are entry points
//! of other CUDA versions that cudarc leaves out for the one it is built for.
//!
//! A CUresult is a plain u32 here: a driver may return codes that no enum of ours knows.

use core::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use core::mem::transmute;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering};

use cudarc::driver::sys::{
    CUcontext, CUctxCreateParams, CUdevice, CUdeviceptr, CUexecAffinityParam, CUmemAllocationProp,
    CUmemGenericAllocationHandle, CUmemPoolProps, CUmemoryPool, CUresult, CUstream, cuuint64_t,
};
use gpumem_wire::ApiId;

use super::{context, device, host, pool, proc_address, vmm};
use crate::real;

/// `CUDA_ERROR_NOT_FOUND`: what a direct call gets where the driver has no such function.
const NOT_FOUND: u32 = 500;

/// One watched function.
pub(crate) struct Row {
    name: &'static CStr,
    hook: Hook,
    /// The driver's own function. Relaxed: it leads to code that is mapped before it is found.
    real: AtomicPtr<c_void>,
    /// Whether it is the per-thread default stream variant.
    pub(crate) per_thread: bool,
    api: ApiId,
}

/// The address of an exported function of ours.
struct Hook(*const ());

// SAFETY: the address of a function is the same for every thread.
unsafe impl Sync for Hook {}

impl Row {
    /// The exported name.
    pub(crate) fn name(&self) -> &'static CStr {
        self.name
    }

    /// The number of the entry point in events.
    pub(crate) fn api(&self) -> ApiId {
        self.api
    }

    /// Our function.
    pub(crate) fn hook(&self) -> *mut c_void {
        self.hook.0.cast_mut().cast()
    }

    /// Sets the driver's function.
    pub(crate) fn set_real(&self, address: NonNull<c_void>) {
        self.real.store(address.as_ptr(), Ordering::Relaxed);
    }

    /// The driver's function. Looked up where the program calls our export without having asked anybody for an address.
    #[inline(always)]
    pub(crate) fn real(&self) -> *mut c_void {
        let address = self.real.load(Ordering::Relaxed);
        if address.is_null() {
            self.find_real()
        } else {
            address
        }
    }

    #[cold]
    fn find_real(&self) -> *mut c_void {
        real::find_driver(0);
        self.real.load(Ordering::Relaxed)
    }
}

macro_rules! signature_check {
    (declared $name:ident ($($type:ty),*)) => {
        const _: unsafe fn($($type),*) -> CUresult = cudarc::driver::sys::$name;
    };
    (undeclared $name:ident ($($type:ty),*)) => {};
}

macro_rules! export {
    ($name:ident ($($argument:ident: $type:ty),*) => $family:ident::$handler:ident) => {
        /// The export of the driver function of the same name: records the call and makes it.
        ///
        /// # Safety
        /// As the driver's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub(crate) unsafe extern "C-unwind" fn $name($($argument: $type),*) -> u32 {
            type Real = unsafe extern "C-unwind" fn($($type),*) -> u32;
            let row = &ROWS[Index::$name as usize];
            let real = row.real();
            if real.is_null() {
                return NOT_FOUND;
            }
            // SAFETY: the driver's function of this very name, whose signature the row gives.
            let real = unsafe { transmute::<*mut c_void, Real>(real) };
            // SAFETY: the program's own arguments, passed on untouched.
            unsafe { $family::$handler(row, || real($($argument),*), $($argument),*) }
        }
    };
}

macro_rules! hooks {
    ($($known:ident $name:ident $(+ $variant:ident)? ($($argument:ident: $type:ty),* $(,)?) => $family:ident::$handler:ident;)*) => {
        $(
            signature_check!($known $name ($($type),*));
            export!($name ($($argument: $type),*) => $family::$handler);
            hooks!(@variant $($variant)? ($($argument: $type),*) => $family::$handler);
        )*

        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        #[derive(Clone, Copy)]
        enum Index { $($name, $($variant,)?)* Count }

        static ROWS: [Row; Index::Count as usize] = [$(
            hooks!(@row $name false),
            $(hooks!(@row $variant true),)?
        )*];
    };
    (@variant ($($argument:ident: $type:ty),*) => $family:ident::$handler:ident) => {};
    (@variant $variant:ident ($($argument:ident: $type:ty),*) => $family:ident::$handler:ident) => {
        export!($variant ($($argument: $type),*) => $family::$handler);
    };
    (@row $name:ident $per_thread:literal) => {
        Row {
            // The name is an identifier: it holds no zero byte.
            name: match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            },
            hook: Hook($name as *const ()),
            real: AtomicPtr::new(null_mut()),
            per_thread: $per_thread,
            api: ApiId(Index::$name as u16 + 1),
        }
    };
}

hooks! {
    // Look-ups.
    undeclared cuGetProcAddress(symbol: *const c_char, pfn: *mut *mut c_void, version: c_int, flags: cuuint64_t)
        => proc_address::look_up_v1;
    undeclared cuGetProcAddress_v2 + cuGetProcAddress_v2_ptsz(symbol: *const c_char, pfn: *mut *mut c_void, version: c_int,
        flags: cuuint64_t, status: *mut c_int) => proc_address::look_up_v2;

    // Device memory.
    declared cuMemAlloc_v2(dptr: *mut CUdeviceptr, bytesize: usize) => device::alloc;
    declared cuMemAllocPitch_v2(dptr: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint)
        => device::alloc_pitch;
    declared cuMemAllocManaged(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint) => device::alloc_managed;
    declared cuMemFree_v2(dptr: CUdeviceptr) => device::free;

    // Pinned host memory.
    declared cuMemHostAlloc(out: *mut *mut c_void, bytesize: usize, flags: c_uint) => host::alloc;
    declared cuMemAllocHost_v2(out: *mut *mut c_void, bytesize: usize) => host::alloc_plain;
    declared cuMemFreeHost(address: *mut c_void) => host::free;
    declared cuMemHostRegister_v2(address: *mut c_void, bytesize: usize, flags: c_uint) => host::register;
    declared cuMemHostUnregister(address: *mut c_void) => host::unregister;

    // Stream-ordered memory.
    declared cuMemAllocAsync + cuMemAllocAsync_ptsz(dptr: *mut CUdeviceptr, bytesize: usize, stream: CUstream)
        => pool::alloc;
    declared cuMemAllocFromPoolAsync + cuMemAllocFromPoolAsync_ptsz(dptr: *mut CUdeviceptr, bytesize: usize,
        pool: CUmemoryPool, stream: CUstream) => pool::alloc_from;
    declared cuMemFreeAsync + cuMemFreeAsync_ptsz(dptr: CUdeviceptr, stream: CUstream) => pool::free;
    declared cuMemPoolCreate(pool: *mut CUmemoryPool, properties: *const CUmemPoolProps) => pool::create;
    declared cuMemPoolDestroy(pool: CUmemoryPool) => pool::destroy;
    declared cuMemPoolTrimTo(pool: CUmemoryPool, keep: usize) => pool::trim;

    // Virtual memory.
    declared cuMemCreate(handle: *mut CUmemGenericAllocationHandle, size: usize, properties: *const CUmemAllocationProp,
        flags: c_ulonglong) => vmm::create;
    declared cuMemRelease(handle: CUmemGenericAllocationHandle) => vmm::release;
    declared cuMemRetainAllocationHandle(handle: *mut CUmemGenericAllocationHandle, address: *mut c_void) => vmm::retain;
    declared cuMemAddressReserve(dptr: *mut CUdeviceptr, size: usize, alignment: usize, wish: CUdeviceptr,
        flags: c_ulonglong) => vmm::reserve;
    declared cuMemAddressFree(dptr: CUdeviceptr, size: usize) => vmm::unreserve;
    declared cuMemMap(dptr: CUdeviceptr, size: usize, offset: usize, handle: CUmemGenericAllocationHandle,
        flags: c_ulonglong) => vmm::map;
    declared cuMemUnmap(dptr: CUdeviceptr, size: usize) => vmm::unmap;

    // Contexts.
    undeclared cuCtxCreate_v2(context: *mut CUcontext, flags: c_uint, device: CUdevice) => context::create_v2;
    undeclared cuCtxCreate_v3(context: *mut CUcontext, affinity: *mut CUexecAffinityParam, count: c_int, flags: c_uint,
        device: CUdevice) => context::create_v3;
    declared cuCtxCreate_v4(context: *mut CUcontext, parameters: *mut CUctxCreateParams, flags: c_uint, device: CUdevice)
        => context::create_v4;
    declared cuCtxDestroy_v2(context: CUcontext) => context::destroy;
    declared cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) => context::retain_primary;
    // The CUDA runtimes up to 13.5 ask for the first version of these two; a driver has them beside the second.
    undeclared cuDevicePrimaryCtxRelease(device: CUdevice) => context::release_primary;
    declared cuDevicePrimaryCtxRelease_v2(device: CUdevice) => context::release_primary;
    undeclared cuDevicePrimaryCtxReset(device: CUdevice) => context::reset_primary;
    declared cuDevicePrimaryCtxReset_v2(device: CUdevice) => context::reset_primary;
}

/// All rows.
pub(crate) fn rows() -> &'static [Row] {
    &ROWS
}

/// The row of a name.
pub(crate) fn by_name(name: &CStr) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.name == name)
}

/// Our function in place of the driver's, judged by the address that a look-up returned. By address and never by name: one
/// base name has several signatures, and which one was meant only the driver's own answer tells.
pub(crate) fn hook_of(real: *mut c_void) -> Option<*mut c_void> {
    ROWS.iter()
        .find(|row| row.real.load(Ordering::Relaxed) == real)
        .filter(|_| !real.is_null())
        .map(Row::hook)
}

/// Whether an address is one of our exports.
pub(crate) fn is_hook(address: *mut c_void) -> bool {
    ROWS.iter().any(|row| row.hook() == address)
}

/// Numbers and names of entry points, those that are not CUDA included.
pub(crate) fn apis() -> impl Iterator<Item = (ApiId, &'static str)> {
    ROWS.iter()
        .map(|row| (row.api, row.name.to_str().unwrap_or_default()))
        .chain(super::torch::APIS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_own_name_number_and_function() {
        for (at, row) in ROWS.iter().enumerate() {
            assert!(!row.name.is_empty());
            assert_eq!(usize::from(row.api.0), at + 1);
            assert_eq!(row.per_thread, row.name.to_bytes().ends_with(b"_ptsz"));
            assert!(core::ptr::eq(by_name(row.name).unwrap(), row));
            assert_eq!(
                ROWS.iter()
                    .filter(|other| other.hook() == row.hook())
                    .count(),
                1,
                "{:?}",
                row.name
            );
        }
    }

    #[test]
    fn an_address_that_is_no_drivers_has_no_hook() {
        assert_eq!(hook_of(null_mut()), None);
        assert_eq!(hook_of(0x1234 as *mut c_void), None);
        assert!(is_hook(ROWS[0].hook()));
    }
}
