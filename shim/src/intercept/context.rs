//! Contexts, and what is asked of the driver about the current one.

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::sys::{CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam};
use gpumem_wire::define::{BorrowedDefinition, Definition, DeviceDefinition};
use gpumem_wire::{DeviceOrdinal, Kind};

use super::table::Row;
use super::{SUCCESS, creating, destroying, read_out};
use crate::real::FoundOnce;
use crate::{elf, real, record};

/// A driver function that we call ourselves: on the program's thread, after a call of its own succeeded. All of these only
/// read what the driver has in memory, so that no stream capture is disturbed.
struct Ask {
    name: &'static CStr,
    address: FoundOnce,
}

static CTX_GET_DEVICE: Ask = Ask::new(c"cuCtxGetDevice");
static CTX_GET_CURRENT: Ask = Ask::new(c"cuCtxGetCurrent");
static DEVICE_GET_UUID: Ask = Ask::new(c"cuDeviceGetUuid_v2");
static DEVICE_GET_NAME: Ask = Ask::new(c"cuDeviceGetName");
static DEVICE_TOTAL_MEM: Ask = Ask::new(c"cuDeviceTotalMem_v2");

impl Ask {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: FoundOnce::new(),
        }
    }

    #[inline(always)]
    fn address(&self) -> Option<NonNull<c_void>> {
        NonNull::new(self.address.get(|| elf::symbol_in(real::DRIVER, self.name)))
    }
}

/// The current device of the calling thread.
pub(super) fn current_device() -> DeviceOrdinal {
    let mut device: CUdevice = -1;
    let Some(ask) = CTX_GET_DEVICE.address() else {
        return DeviceOrdinal::UNKNOWN;
    };
    // SAFETY: `CUresult cuCtxGetDevice(CUdevice *)`.
    let status = unsafe {
        transmute::<*mut c_void, unsafe extern "C" fn(*mut CUdevice) -> u32>(ask.as_ptr())(
            &raw mut device,
        )
    };
    if status != SUCCESS {
        return DeviceOrdinal::UNKNOWN;
    }
    let ordinal = i16::try_from(device).map_or(DeviceOrdinal::UNKNOWN, DeviceOrdinal);
    describe(ordinal);
    ordinal
}

/// The current device and context of the calling thread.
pub(super) fn current() -> (DeviceOrdinal, u64) {
    let mut context: CUcontext = null_mut();
    if let Some(ask) = CTX_GET_CURRENT.address() {
        // SAFETY: `CUresult cuCtxGetCurrent(CUcontext *)`.
        unsafe {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut CUcontext) -> u32>(ask.as_ptr())(
                &raw mut context,
            )
        };
    }
    (current_device(), context as u64)
}

/// Devices that were described, a bit each. Relaxed: at worst one is described twice.
static DESCRIBED: AtomicU64 = AtomicU64::new(0);

/// A forked child describes its devices anew.
pub(crate) fn forget() {
    DESCRIBED.store(0, Ordering::Relaxed);
}

/// Sends a device's definition, once.
#[inline]
fn describe(device: DeviceOrdinal) {
    let Some(bit) = u32::try_from(device.0)
        .ok()
        .and_then(|ordinal| 1u64.checked_shl(ordinal))
    else {
        return;
    };
    if DESCRIBED.load(Ordering::Relaxed) & bit == 0 {
        DESCRIBED.fetch_or(bit, Ordering::Relaxed);
        define(device);
    }
}

#[cold]
fn define(device: DeviceOrdinal) {
    let ordinal = CUdevice::from(device.0);
    let mut uuid = [0u8; 16];
    let mut name = [0u8; 96];
    let mut total = 0usize;
    // SAFETY: `cuDeviceGetUuid_v2(CUuuid *, CUdevice)` writes 16 bytes (a MIG instance's own UUID),
    // `cuDeviceGetName(char *, int, CUdevice)` a C string of at most the length given, `cuDeviceTotalMem_v2(size_t *, CUdevice)`
    // a size.
    let has_uuid = unsafe {
        if let Some(ask) = DEVICE_GET_NAME.address() {
            let length = name.len() as c_int;
            transmute::<*mut c_void, unsafe extern "C" fn(*mut c_char, c_int, CUdevice) -> u32>(
                ask.as_ptr(),
            )(name.as_mut_ptr().cast(), length, ordinal);
        }
        if let Some(ask) = DEVICE_TOTAL_MEM.address() {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut usize, CUdevice) -> u32>(
                ask.as_ptr(),
            )(&raw mut total, ordinal);
        }
        DEVICE_GET_UUID.address().is_some_and(|ask| {
            transmute::<*mut c_void, unsafe extern "C" fn(*mut [u8; 16], CUdevice) -> u32>(
                ask.as_ptr(),
            )(&raw mut uuid, ordinal)
                == SUCCESS
        })
    };
    let mut text = [0u8; 40];
    let name = CStr::from_bytes_until_nul(&name)
        .ok()
        .and_then(|name| name.to_str().ok())
        .unwrap_or_default();
    let definition: BorrowedDefinition<'_> = Definition::Device(DeviceDefinition {
        ordinal: device.0,
        uuid: if has_uuid {
            format_uuid(&uuid, &mut text)
        } else {
            ""
        },
        name,
        total_bytes: total as u64,
    });
    record::define(&definition);
}

/// `GPU-8-4-4-4-12` in hexadecimal, as NVML and nvidia-smi write it.
fn format_uuid<'a>(uuid: &[u8; 16], text: &'a mut [u8; 40]) -> &'a str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let dash_before = |at: usize| matches!(at, 4 | 6 | 8 | 10);
    let digits = uuid.iter().enumerate().flat_map(|(at, &byte)| {
        let high = DIGITS.get(usize::from(byte >> 4)).copied();
        let low = DIGITS.get(usize::from(byte & 15)).copied();
        dash_before(at)
            .then_some(b'-')
            .into_iter()
            .chain(high)
            .chain(low)
    });
    for (place, letter) in text.iter_mut().zip(b"GPU-".iter().copied().chain(digits)) {
        *place = letter;
    }
    std::str::from_utf8(text).unwrap_or_default()
}

fn ordinal(device: CUdevice) -> DeviceOrdinal {
    i16::try_from(device).map_or(DeviceOrdinal::UNKNOWN, DeviceOrdinal)
}

/// The ordinal of a device that a call just succeeded on: it may be asked about.
fn described(device: CUdevice) -> DeviceOrdinal {
    let ordinal = i16::try_from(device).map_or(DeviceOrdinal::UNKNOWN, DeviceOrdinal);
    describe(ordinal);
    ordinal
}

unsafe fn created(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    kind: Kind,
    (context, flags, device): (*mut CUcontext, c_uint, CUdevice),
) -> u32 {
    let born = |call: &super::Call<'_>| {
        // SAFETY: the program's own out-parameter, written by the real call.
        let Some(context) = (unsafe { read_out(context) }) else {
            return;
        };
        call.with_stack(
            kind,
            described(device),
            [context as u64, flags.into(), 0, 0],
        );
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { creating(row, real, born) }
}

/// `cuCtxCreate_v2`.
pub(super) unsafe fn create_v2(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    context: *mut CUcontext,
    flags: c_uint,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe { created(row, real, Kind::ContextCreate, (context, flags, device)) }
}

/// `cuCtxCreate_v3`.
pub(super) unsafe fn create_v3(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    context: *mut CUcontext,
    _affinity: *mut CUexecAffinityParam,
    _count: c_int,
    flags: c_uint,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe { created(row, real, Kind::ContextCreate, (context, flags, device)) }
}

/// `cuCtxCreate_v4`.
pub(super) unsafe fn create_v4(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    context: *mut CUcontext,
    _parameters: *mut CUctxCreateParams,
    flags: c_uint,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe { created(row, real, Kind::ContextCreate, (context, flags, device)) }
}

/// `cuCtxDestroy_v2`.
pub(super) unsafe fn destroy(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    context: CUcontext,
) -> u32 {
    let begin = |call: &super::Call<'_>| {
        call.without_stack(
            Kind::ContextDestroy,
            DeviceOrdinal::UNKNOWN,
            [context as u64, 0, 0, 0],
        )
    };
    // SAFETY: the real call with the program's own arguments.
    unsafe { destroying(row, real, begin) }
}

/// `cuDevicePrimaryCtxRetain`.
pub(super) unsafe fn retain_primary(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    context: *mut CUcontext,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe { created(row, real, Kind::PrimaryRetain, (context, 0, device)) }
}

/// `cuDevicePrimaryCtxRelease_v2`.
pub(super) unsafe fn release_primary(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe {
        destroying(row, real, |call| {
            call.without_stack(Kind::PrimaryRelease, ordinal(device), [0; 4])
        })
    }
}

/// `cuDevicePrimaryCtxReset_v2`.
pub(super) unsafe fn reset_primary(
    row: &'static Row,
    real: impl FnOnce() -> u32,
    device: CUdevice,
) -> u32 {
    // SAFETY: the real call with the program's own arguments.
    unsafe {
        destroying(row, real, |call| {
            call.without_stack(Kind::PrimaryReset, ordinal(device), [0; 4])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_written_as_nvml_writes_it() {
        let uuid = [
            0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0, 1, 2, 3, 4, 5, 6, 7,
        ];
        let mut text = [0; 40];
        assert_eq!(
            format_uuid(&uuid, &mut text),
            "GPU-abcdef01-2345-6789-0001-020304050607"
        );
    }
}
