//! Kernels and host functions that a stream runs.
//!
//! A kernel computes nothing. It takes `GPUMEM_SIM_KERNEL_NS` of device time,
//! and one whose name contains `spin_kernel` as many nanoseconds more as its
//! first argument says (`torch.cuda._sleep`).

use std::ffi::c_void;
use std::time::Duration;

use crate::abi::{In, Outcome, Plain, Status};
use crate::entry::entry;
use crate::graph::Work;
use crate::machine::Machine;
use crate::stream::{DefaultStream, StreamRef};

/// What the name of PyTorch's kernel that says of numbers whether all are true is
/// made of, mangled: the reduction, and the function that it is made for
/// (aten/src/ATen/native/cuda/ReduceLogicKernel.cu). The number before the name is
/// its length, so that `bitwise_and_kernel_cuda` is none.
const CONJUNCTION: [&str; 2] = ["13reduce_kernel", "15and_kernel_cuda"];

/// Threads of a block at most.
const MAX_BLOCK_THREADS: u64 = 1024;

/// What is known of a kernel that a stream runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    pub(crate) duration: Duration,
    /// It says of numbers whether all are true.
    pub(crate) is_conjunction: bool,
}

/// A function of the program that runs when a stream comes to it. It is called
/// without the machine's lock, so that it may do what it likes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostCall {
    /// `cuLaunchHostFunc`.
    Function(unsafe extern "C" fn(*mut c_void), Argument),
    /// `cuStreamAddCallback`, with the stream.
    Callback(unsafe extern "C" fn(u64, i32, *mut c_void), u64, Argument),
}

/// The program's own pointer, handed back as it came.
#[repr(transparent)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Argument(*mut c_void);

// SAFETY: never followed here; CUDA calls host functions from any thread.
unsafe impl Send for Argument {}

impl HostCall {
    /// Calls the program.
    pub(crate) fn run(self) {
        // SAFETY: the program gave the function with this signature, to be
        // called once for each submission, with this argument.
        unsafe {
            match self {
                Self::Function(function, argument) => function(argument.0),
                Self::Callback(function, stream, argument) => function(stream, 0, argument.0),
            }
        }
    }
}

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct LaunchConfig {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    padding: u32,
    stream: u64,
    attributes: u64,
    attribute_count: u32,
    padding_after: u32,
}

// SAFETY: integers alone, the padding written out.
unsafe impl Plain for LaunchConfig {}

const _: () = assert!(
    size_of::<LaunchConfig>() == size_of::<cudarc::driver::sys::CUlaunchConfig>(),
    "CUlaunchConfig has another size"
);

/// A kernel's arguments: an array of pointers, one an argument.
type Arguments = In<In<i64>>;

impl Machine {
    fn launch(
        &mut self,
        stream: &StreamRef,
        function: u64,
        (grid, block): ([u32; 3], [u32; 3]),
        arguments: &Arguments,
    ) -> Outcome {
        self.contexts.current()?;
        let name = self.modules.function_name(function)?;
        let threads: u64 = block.map(u64::from).iter().product();
        if grid.contains(&0) || threads == 0 || threads > MAX_BLOCK_THREADS {
            return Err(Status::INVALID_VALUE);
        }
        let mut nanoseconds = crate::config::get().kernel_ns;
        if name.contains("spin_kernel") {
            let wanted = arguments.read_at(0)?.read()?;
            nanoseconds = nanoseconds.saturating_add(u64::try_from(wanted).unwrap_or(0));
        }
        let kernel = Kernel {
            duration: Duration::from_nanos(nanoseconds),
            is_conjunction: CONJUNCTION.iter().all(|part| name.contains(part)),
        };
        self.submit(stream, Work::Kernel(kernel))
    }

    fn call_host(&mut self, stream: u64, default: DefaultStream, call: HostCall) -> Outcome {
        let stream = self.stream(stream, default)?;
        self.submit(&stream, Work::Host(call))
    }
}

entry! {
    /// Launches a kernel, by the handle of a function or of a kernel.
    fn cuLaunchKernel | cuLaunchKernel_ptsz(
        machine, default;
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        _shared_bytes: u32, stream: u64, arguments: Arguments, _extra: u64,
    ) {
        let stream = machine.stream(stream, default)?;
        let shape = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        machine.launch(&stream, function, shape, &arguments)
    }

    /// Launches a kernel as a structure says; its attributes mean nothing here.
    fn cuLaunchKernelEx | cuLaunchKernelEx_ptsz(
        machine, default;
        config: In<LaunchConfig>, function: u64, arguments: Arguments, _extra: u64
    ) {
        let config = config.read()?;
        let stream = machine.stream(config.stream, default)?;
        machine.launch(&stream, function, (config.grid, config.block), &arguments)
    }

    /// Launches a kernel whose blocks could wait for each other.
    fn cuLaunchCooperativeKernel | cuLaunchCooperativeKernel_ptsz(
        machine, default;
        function: u64,
        grid_x: u32, grid_y: u32, grid_z: u32,
        block_x: u32, block_y: u32, block_z: u32,
        _shared_bytes: u32, stream: u64, arguments: Arguments,
    ) {
        let stream = machine.stream(stream, default)?;
        let shape = ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]);
        machine.launch(&stream, function, shape, &arguments)
    }

    /// Calls a function of the program after what the stream has.
    fn cuLaunchHostFunc | cuLaunchHostFunc_ptsz(
        machine, default;
        stream: u64, function: Option<unsafe extern "C" fn(*mut c_void)>, argument: Argument
    ) {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        machine.call_host(stream, default, HostCall::Function(function, argument))
    }

    /// The older kind, which is told the stream and its state.
    fn cuStreamAddCallback | cuStreamAddCallback_ptsz(
        machine, default;
        stream: u64,
        function: Option<unsafe extern "C" fn(u64, i32, *mut c_void)>,
        argument: Argument,
        flags: u32,
    ) {
        let function = function.ok_or(Status::INVALID_VALUE)?;
        if flags != 0 {
            return Err(Status::INVALID_VALUE);
        }
        machine.call_host(stream, default, HostCall::Callback(function, stream, argument))
    }

    /// A profiler may look now; there is none.
    fn cuProfilerStart(machine;) {
        machine.contexts.current().map(drop)
    }

    /// It may not any more.
    fn cuProfilerStop(machine;) {
        machine.contexts.current().map(drop)
    }
}
