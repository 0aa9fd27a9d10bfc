//! Kernels: launches, properties, and the variables beside them.

use std::cell::Cell;
use std::ffi::c_void;

use crate::driver::{Driver, Handle};
use crate::error::{INVALID_VALUE, Outcome};
use crate::export::api;
use crate::registry::{kernel, variable};

/// `dim3`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Shape {
    x: u32,
    y: u32,
    z: u32,
}

/// `cudaLaunchConfig_t`, whose attributes mean nothing here.
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: Shape,
    block: Shape,
    shared_bytes: usize,
    stream: Handle,
    attributes: Handle,
    attribute_count: u32,
}

impl LaunchConfig {
    /// The same on another stream.
    pub(crate) fn on(&self, stream: impl FnOnce(Handle) -> Handle) -> Self {
        Self {
            stream: stream(self.stream),
            ..*self
        }
    }
}

/// `cudaFuncAttributes`.
#[repr(C)]
pub(crate) struct Attributes {
    shared_bytes: usize,
    constant_bytes: usize,
    local_bytes: usize,
    /// Threads of a block, registers, versions, caches, dynamic shared memory,
    /// carve-out: the driver's attributes 0 and 4 to 9.
    rest: [i32; 7],
    cluster: [i32; 6],
    reserved: [i32; 16],
}

/// A launch between `<<<` and `>>>`.
#[derive(Clone, Copy, Default)]
struct Pushed {
    grid: Shape,
    block: Shape,
    shared_bytes: usize,
    stream: Handle,
}

/// Launches that can be nested in one thread.
const DEPTH: usize = 16;

std::thread_local! {
    static PUSHED: [Cell<Pushed>; DEPTH] = const {
        [const {
            Cell::new(Pushed {
                grid: Shape { x: 0, y: 0, z: 0 },
                block: Shape { x: 0, y: 0, z: 0 },
                shared_bytes: 0,
                stream: 0,
            })
        }; DEPTH]
    };
    static PUSHED_COUNT: Cell<usize> = const { Cell::new(0) };
}

fn push(launch: Pushed) -> Outcome {
    let depth = PUSHED_COUNT.get();
    PUSHED.with(|all| {
        all.get(depth)
            .map(|slot| slot.set(launch))
            .ok_or(INVALID_VALUE)
    })?;
    PUSHED_COUNT.set(depth + 1);
    Ok(())
}

unsafe fn pop(
    grid: *mut Shape,
    block: *mut Shape,
    shared_bytes: *mut usize,
    stream: *mut Handle,
) -> Outcome {
    let depth = PUSHED_COUNT.get().checked_sub(1).ok_or(INVALID_VALUE)?;
    let launch = PUSHED
        .with(|all| all.get(depth).map(Cell::get))
        .ok_or(INVALID_VALUE)?;
    PUSHED_COUNT.set(depth);
    // SAFETY: the caller is code of the compiler, which has room for all four.
    unsafe {
        grid.write(launch.grid);
        block.write(launch.block);
        shared_bytes.write(launch.shared_bytes);
        stream.write(launch.stream);
    }
    Ok(())
}

unsafe fn launch(
    driver: &Driver,
    kernel: Handle,
    (grid, block): (Shape, Shape),
    arguments: *mut *mut c_void,
    shared_bytes: usize,
    stream: Handle,
) -> Outcome {
    let shared_bytes = u32::try_from(shared_bytes).map_err(|_| INVALID_VALUE)?;
    // SAFETY: the caller vouches for the arguments.
    unsafe {
        driver.cuLaunchKernel(
            kernel,
            grid.x,
            grid.y,
            grid.z,
            block.x,
            block.y,
            block.z,
            shared_bytes,
            stream,
            arguments,
            0,
        )
    }
}

unsafe fn attributes(driver: &Driver, out: *mut Attributes, kernel: Handle) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    let device = driver.device();
    let attribute = |id| {
        let mut value = 0;
        // SAFETY: the answer has room.
        unsafe { driver.cuKernelGetAttribute(&mut value, id, kernel, device) }.map(|()| value)
    };
    let mut rest = [0; 7];
    for (id, value) in [0, 4, 5, 6, 7, 8, 9].into_iter().zip(&mut rest) {
        *value = attribute(id)?;
    }
    let bytes = |id| attribute(id).map(|value| usize::try_from(value).unwrap_or(0));
    let answer = Attributes {
        shared_bytes: bytes(1)?,
        constant_bytes: bytes(2)?,
        local_bytes: bytes(3)?,
        rest,
        cluster: [0; 6],
        reserved: [0; 16],
    };
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe { out.write(answer) };
    Ok(())
}

/// Writes an answer; NULL is an error.
unsafe fn set<T>(out: *mut T, value: T) -> Outcome {
    if out.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: not NULL, so the caller vouches for room.
    unsafe { out.write(value) };
    Ok(())
}

api! {
    /// Keeps the shape of a launch for the stand-in that is called next.
    free fn __cudaPushCallConfiguration(
        _, grid: Shape, block: Shape, shared_bytes: usize, stream: Handle
    ) = push(Pushed { grid, block, shared_bytes, stream });

    /// Hands it to the stand-in.
    free fn __cudaPopCallConfiguration(
        _, grid: *mut Shape, block: *mut Shape, shared_bytes: *mut usize, stream: *mut Handle
    ) = pop(grid, block, shared_bytes, stream);

    /// Launches a kernel.
    current fn cudaLaunchKernel(
        driver, stand_in: *const c_void, grid: Shape, block: Shape,
        arguments: *mut *mut c_void, shared_bytes: usize, stream: Handle,
    ) = launch(driver, kernel(driver, stand_in)?, (grid, block), arguments, shared_bytes, stream);

    /// Launches a kernel whose blocks could wait for each other.
    current fn cudaLaunchCooperativeKernel(
        driver, stand_in: *const c_void, grid: Shape, block: Shape,
        arguments: *mut *mut c_void, shared_bytes: usize, stream: Handle,
    ) = launch(driver, kernel(driver, stand_in)?, (grid, block), arguments, shared_bytes, stream);

    /// Launches a kernel as a structure says.
    current fn cudaLaunchKernelExC(
        driver, config: *const LaunchConfig, stand_in: *const c_void,
        arguments: *mut *mut c_void,
    ) = {
        let config = config.as_ref().ok_or(INVALID_VALUE)?;
        let shape = (config.grid, config.block);
        let kernel = kernel(driver, stand_in)?;
        launch(driver, kernel, shape, arguments, config.shared_bytes, config.stream)
    };

    /// The kernel of a stand-in.
    loaded fn __cudaGetKernel(driver, out: *mut Handle, stand_in: *const c_void) =
        set(out, kernel(driver, stand_in)?);

    /// The kernel of a stand-in.
    loaded fn cudaGetKernel(driver, out: *mut Handle, stand_in: *const c_void) =
        set(out, kernel(driver, stand_in)?);

    /// The kernel of a stand-in, as a function: the same handle.
    loaded fn cudaGetFuncBySymbol(driver, out: *mut Handle, stand_in: *const c_void) =
        set(out, kernel(driver, stand_in)?);

    /// Launches a kernel by its handle.
    current fn __cudaLaunchKernel(
        driver, kernel: Handle, grid: Shape, block: Shape,
        arguments: *mut *mut c_void, shared_bytes: usize, stream: Handle,
    ) = launch(driver, kernel, (grid, block), arguments, shared_bytes, stream);

    /// Properties of a kernel.
    current fn cudaFuncGetAttributes(driver, out: *mut Attributes, stand_in: *const c_void) =
        attributes(driver, out, kernel(driver, stand_in)?);

    /// Sets a property of a kernel; the driver's numbers.
    current fn cudaFuncSetAttribute(
        driver, stand_in: *const c_void, attribute: i32, value: i32
    ) = driver.cuKernelSetAttribute(attribute, value, kernel(driver, stand_in)?, driver.device());

    /// Sets a property of a kernel by its handle.
    loaded fn cudaKernelSetAttributeForDevice(
        driver, kernel: Handle, attribute: i32, value: i32, device: i32
    ) = driver.cuKernelSetAttribute(attribute, value, kernel, device);

    /// A wish that means nothing here.
    loaded fn cudaFuncSetCacheConfig(driver, stand_in: *const c_void, _config: i32) =
        kernel(driver, stand_in).map(drop);

    /// Blocks that a multiprocessor holds.
    current fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        driver, out: *mut i32, stand_in: *const c_void, threads: i32, shared_bytes: usize
    ) = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out, kernel(driver, stand_in)?, threads, shared_bytes, 0
    );

    /// The same with flags.
    current fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        driver, out: *mut i32, stand_in: *const c_void, threads: i32, shared_bytes: usize,
        flags: u32,
    ) = driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out, kernel(driver, stand_in)?, threads, shared_bytes, flags
    );

    /// Where a variable lies.
    current fn cudaGetSymbolAddress(driver, out: *mut Handle, stand_in: *const c_void) =
        set(out, variable(driver, stand_in)?.0);

    /// How large a variable is.
    current fn cudaGetSymbolSize(driver, out: *mut usize, stand_in: *const c_void) =
        set(out, variable(driver, stand_in)?.1);

    /// Writes to a variable.
    current fn cudaMemcpyToSymbol(
        driver, stand_in: *const c_void, from: Handle, bytes: usize, offset: usize, _kind: i32
    ) = driver.cuMemcpy(variable(driver, stand_in)?.0 + offset as u64, from, bytes);
}
