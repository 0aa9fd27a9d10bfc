//! `cudaDeviceProp`: filled by the driver's attributes.
//!
//! The structure differs between 12 and 13; a row says where a field is in each
//! (`driver_types.h`). Before 12 it ended earlier, with the same fields before.

use crate::driver::Driver;
use crate::error::{INVALID_VALUE, Outcome};

/// Which structure a program has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// That of version 11, which programs of 12 get by the name without a number.
    #[cfg(twelve)]
    Eleven,
    /// That of version 12.
    #[cfg(twelve)]
    Twelve,
    /// That of version 13.
    #[cfg(not(twelve))]
    Thirteen,
}

impl Layout {
    /// Bytes of the structure.
    fn size_bytes(self) -> usize {
        match self {
            #[cfg(twelve)]
            Self::Eleven => 728,
            #[cfg(twelve)]
            Self::Twelve => 1032,
            #[cfg(not(twelve))]
            Self::Thirteen => 1008,
        }
    }
}

/// Bytes of the name, with which the structure begins.
const NAME_BYTES: i32 = 256;
/// Where the UUID is.
const UUID_AT: usize = 256;
/// Where the device's memory is.
const TOTAL_MEMORY_AT: usize = 288;

/// A field that is an attribute of the driver's.
struct Property {
    attribute: i32,
    at_12: usize,
    at_13: usize,
    /// A `size_t`; else an `int`.
    is_size: bool,
}

impl Property {
    /// Where the field is in this runtime's structures.
    fn at(&self) -> usize {
        if cfg!(twelve) { self.at_12 } else { self.at_13 }
    }
}

#[rustfmt::skip]
const PROPERTIES: &[Property] = &[
    Property { attribute: 8, at_12: 296, at_13: 296, is_size: true }, // sharedMemPerBlock
    Property { attribute: 12, at_12: 304, at_13: 304, is_size: false }, // regsPerBlock
    Property { attribute: 10, at_12: 308, at_13: 308, is_size: false }, // warpSize
    Property { attribute: 11, at_12: 312, at_13: 312, is_size: true }, // memPitch
    Property { attribute: 1, at_12: 320, at_13: 320, is_size: false }, // maxThreadsPerBlock
    Property { attribute: 2, at_12: 324, at_13: 324, is_size: false }, // maxThreadsDim[0]
    Property { attribute: 3, at_12: 328, at_13: 328, is_size: false }, // maxThreadsDim[1]
    Property { attribute: 4, at_12: 332, at_13: 332, is_size: false }, // maxThreadsDim[2]
    Property { attribute: 5, at_12: 336, at_13: 336, is_size: false }, // maxGridSize[0]
    Property { attribute: 6, at_12: 340, at_13: 340, is_size: false }, // maxGridSize[1]
    Property { attribute: 7, at_12: 344, at_13: 344, is_size: false }, // maxGridSize[2]
    Property { attribute: 9, at_12: 352, at_13: 352, is_size: true }, // totalConstMem
    Property { attribute: 75, at_12: 360, at_13: 360, is_size: false }, // major
    Property { attribute: 76, at_12: 364, at_13: 364, is_size: false }, // minor
    Property { attribute: 14, at_12: 368, at_13: 368, is_size: true }, // textureAlignment
    Property { attribute: 51, at_12: 376, at_13: 376, is_size: true }, // texturePitchAlignment
    Property { attribute: 16, at_12: 388, at_13: 384, is_size: false }, // multiProcessorCount
    Property { attribute: 18, at_12: 396, at_13: 388, is_size: false }, // integrated
    Property { attribute: 19, at_12: 400, at_13: 392, is_size: false }, // canMapHostMemory
    Property { attribute: 31, at_12: 576, at_13: 560, is_size: false }, // concurrentKernels
    Property { attribute: 32, at_12: 580, at_13: 564, is_size: false }, // ECCEnabled
    Property { attribute: 33, at_12: 584, at_13: 568, is_size: false }, // pciBusID
    Property { attribute: 34, at_12: 588, at_13: 572, is_size: false }, // pciDeviceID
    Property { attribute: 50, at_12: 592, at_13: 576, is_size: false }, // pciDomainID
    Property { attribute: 40, at_12: 600, at_13: 584, is_size: false }, // asyncEngineCount
    Property { attribute: 41, at_12: 604, at_13: 588, is_size: false }, // unifiedAddressing
    Property { attribute: 37, at_12: 612, at_13: 592, is_size: false }, // memoryBusWidth
    Property { attribute: 38, at_12: 616, at_13: 596, is_size: false }, // l2CacheSize
    Property { attribute: 39, at_12: 624, at_13: 604, is_size: false }, // maxThreadsPerMultiProcessor
    Property { attribute: 78, at_12: 628, at_13: 608, is_size: false }, // streamPrioritiesSupported
    Property { attribute: 79, at_12: 632, at_13: 612, is_size: false }, // globalL1CacheSupported
    Property { attribute: 80, at_12: 636, at_13: 616, is_size: false }, // localL1CacheSupported
    Property { attribute: 81, at_12: 640, at_13: 624, is_size: true }, // sharedMemPerMultiprocessor
    Property { attribute: 82, at_12: 648, at_13: 632, is_size: false }, // regsPerMultiprocessor
    Property { attribute: 83, at_12: 652, at_13: 636, is_size: false }, // managedMemory
    Property { attribute: 88, at_12: 672, at_13: 652, is_size: false }, // pageableMemoryAccess
    Property { attribute: 89, at_12: 676, at_13: 656, is_size: false }, // concurrentManagedAccess
    Property { attribute: 95, at_12: 688, at_13: 668, is_size: false }, // cooperativeLaunch
    Property { attribute: 97, at_12: 696, at_13: 672, is_size: true }, // sharedMemPerBlockOptin
    Property { attribute: 106, at_12: 712, at_13: 688, is_size: false }, // maxBlocksPerMultiProcessor
    Property { attribute: 99, at_12: 728, at_13: 704, is_size: false }, // hostRegisterSupported
    Property { attribute: 111, at_12: 720, at_13: 696, is_size: true }, // reservedSharedMemPerBlock
    Property { attribute: 115, at_12: 744, at_13: 720, is_size: false }, // memoryPoolsSupported
    Property { attribute: 120, at_12: 772, at_13: 748, is_size: false }, // clusterLaunch
];

/// Fills the structure.
pub(crate) unsafe fn fill(driver: &Driver, out: *mut u8, layout: Layout, device: i32) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let size_bytes = layout.size_bytes();
    // SAFETY: not NULL, so the caller vouches for a structure of this size, in
    // which all written places lie.
    unsafe {
        out.write_bytes(0, size_bytes);
        driver.cuDeviceGetName(out.cast(), NAME_BYTES, device)?;
        driver.cuDeviceGetUuid(out.add(UUID_AT).cast(), device)?;
        driver.cuDeviceTotalMem(out.add(TOTAL_MEMORY_AT).cast(), device)?;
        for property in PROPERTIES {
            let at = property.at();
            if at >= size_bytes {
                continue;
            }
            let mut value = 0;
            driver.cuDeviceGetAttribute(&mut value, property.attribute, device)?;
            let field = out.add(at);
            if property.is_size {
                field
                    .cast::<usize>()
                    .write_unaligned(usize::try_from(value).unwrap_or(0));
            } else {
                field.cast::<i32>().write_unaligned(value);
            }
        }
    }
    Ok(())
}
