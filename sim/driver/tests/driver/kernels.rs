//! Modules, kernels and the time that they take.

use std::ffi::{CStr, CString, c_char};

use crate::library::*;

/// A kernel of a new library.
fn kernel(driver: &Driver, name: &str) -> u64 {
    let library = get(|out| driver.cuLibraryLoadData(out, b"any".as_ptr(), 0, 0, 0, 0, 0, 0));
    let name = CString::new(name).unwrap();
    get(|out| driver.cuLibraryGetKernel(out, library, name.as_ptr()))
}

/// Launches it on a stream, with one argument.
fn launch(driver: &Driver, kernel: u64, stream: u64, argument: i64) -> i32 {
    let arguments = [&raw const argument];
    driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments.as_ptr(), 0)
}

#[test]
fn every_name_is_found_once() {
    isolated("kernels::every_name_is_found_once", &[], |driver| {
        driver.start();
        let module = get(|out| driver.cuModuleLoadData(out, b"any".as_ptr()));
        let name = c"add".as_ptr();
        let function = get(|out| driver.cuModuleGetFunction(out, module, name));
        assert_eq!(
            get(|out| driver.cuModuleGetFunction(out, module, name)),
            function
        );
        let other = get(|out| driver.cuModuleGetFunction(out, module, c"sub".as_ptr()));
        assert_ne!(other, function);

        let mut said: *const c_char = std::ptr::null();
        assert_eq!(driver.cuKernelGetName(&mut said, function), SUCCESS);
        // SAFETY: the answer of a call that succeeded lives as long as the module.
        assert_eq!(unsafe { CStr::from_ptr(said) }, c"add");

        assert_eq!(get(|out| driver.cuFuncGetAttribute(out, 0, function)), 1024);
        assert_eq!(driver.cuFuncSetAttribute(function, 8, 100_000), SUCCESS);
        assert_eq!(
            get(|out| driver.cuFuncGetAttribute(out, 8, function)),
            100_000
        );
        assert_eq!(driver.cuFuncSetAttribute(function, 4, 1), INVALID_VALUE);
        let blocks =
            get(|out| driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(out, function, 256, 0));
        assert_eq!(blocks, 8);

        assert_eq!(driver.cuModuleUnload(module), SUCCESS);
        assert_eq!(driver.cuModuleUnload(module), INVALID_HANDLE);
        let mut out = 0;
        assert_eq!(
            driver.cuFuncGetAttribute(&mut out, 0, function),
            INVALID_HANDLE
        );
        assert_eq!(launch(driver, function, 0, 0), INVALID_HANDLE);
    });
}

/// PyTorch's name of the kernel behind `all`, but for what it is made for.
const ALL: &str = "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIbNS0_14func_wrapper_tIbZZZNS0_15and_kernel_cudaE";

#[test]
fn all_is_true_where_it_is_the_last_work() {
    let test = "kernels::all_is_true_where_it_is_the_last_work";
    isolated(test, &[("GPUMEM_SIM_SMALL_D2H", "16")], |driver| {
        driver.start();
        let all = kernel(driver, ALL);
        let sum = kernel(driver, &ALL.replace("15and_kernel", "15sum_kernel"));
        let each = kernel(driver, &ALL.replace("15and_kernel", "23bitwise_and_kernel"));
        let memory = driver.alloc(64);
        let other = get(|out| driver.cuStreamCreate(out, 0));
        let read = |bytes: usize, stream| {
            let mut back = [7_u8; 16];
            let status = driver.cuMemcpyDtoHAsync_v2(back.as_mut_ptr(), memory, bytes, stream);
            assert_eq!(status, SUCCESS);
            back[0]
        };
        assert_eq!(read(1, 0), 0);
        assert_eq!(launch(driver, all, 0, 0), SUCCESS);
        // As often as it is read, on its stream, and no number but a byte.
        let found = [
            read(1, 0),
            read(1, 0),
            read(1, other),
            read(4, 0),
            read(1, 0),
        ];
        assert_eq!(found, [1, 1, 0, 0, 1]);
        for last in [sum, each] {
            assert_eq!(launch(driver, all, 0, 0), SUCCESS);
            assert_eq!(launch(driver, last, 0, 0), SUCCESS);
            assert_eq!(read(1, 0), 0);
        }
        assert_eq!(launch(driver, all, other, 0), SUCCESS);
        assert_eq!(launch(driver, all, 0, 0), SUCCESS);
        assert_eq!(driver.cuMemsetD32Async(memory, 0, 1, other), SUCCESS);
        assert_eq!((read(1, other), read(1, 0)), (0, 1));
        let copied = |bytes| driver.cuMemcpyDtoDAsync_v2_ptsz(memory + 8, memory, bytes, other);
        assert_eq!(launch(driver, all, other, 0), SUCCESS);
        assert_eq!((copied(1), read(1, other)), (SUCCESS, 1));
        assert_eq!((copied(2), read(1, other)), (SUCCESS, 0));
        // The program's own byte is no answer of a kernel's.
        let byte = [1_u8];
        assert_eq!(launch(driver, all, other, 0), SUCCESS);
        assert_eq!(
            driver.cuMemcpyHtoDAsync_v2(memory, byte.as_ptr(), 1, other),
            SUCCESS
        );
        assert_eq!(read(1, other), 0);
        assert_eq!(driver.cuMemcpyHtoD_v2(memory, byte.as_ptr(), 1), SUCCESS);
        assert_eq!(read(1, 0), 0);
    });
}

#[test]
fn a_variable_can_be_copied_to_and_costs_nothing() {
    let test = "kernels::a_variable_can_be_copied_to_and_costs_nothing";
    isolated(test, &[], |driver| {
        driver.start();
        let module = get(|out| driver.cuModuleLoadData(out, b"any".as_ptr()));
        let (mut address, mut bytes) = (0, 0);
        let name = c"scale".as_ptr();
        assert_eq!(
            driver.cuModuleGetGlobal_v2(&mut address, &mut bytes, module, name),
            SUCCESS
        );
        assert_eq!(
            driver.cuMemcpyHtoD_v2(address, [1, 2, 3].as_ptr(), 3),
            SUCCESS
        );
        let mut back = [0; 3];
        assert_eq!(
            driver.cuMemcpyDtoH_v2(back.as_mut_ptr(), address, 3),
            SUCCESS
        );
        assert_eq!(back, [1, 2, 3]);
        assert_eq!(driver.used(), 0);
        assert_eq!(driver.live("variable").len(), 1);
        // It is the module's: not the program's to free, and gone with it.
        assert_eq!(driver.cuMemFree_v2(address), INVALID_VALUE);
        assert_eq!(driver.cuModuleUnload(module), SUCCESS);
        assert_eq!(driver.live("variable").len(), 0);
    });
}

#[test]
fn work_takes_the_time_that_it_says() {
    let test = "kernels::work_takes_the_time_that_it_says";
    isolated(test, &[], |driver| {
        driver.start();
        let [first, second] = [1, 1].map(|flags| get(|out| driver.cuStreamCreate(out, flags)));
        let [start, end, later] = [0, 0, 0].map(|_| get(|out| driver.cuEventCreate(out, 0)));
        let spin = kernel(driver, "_ZN2at4cuda12_GLOBAL__N_1_11spin_kernelEl");
        let hour_ns = 3_600_000_000_000;

        assert_eq!(driver.cuEventRecord(start, first), SUCCESS);
        assert_eq!(launch(driver, spin, first, hour_ns), SUCCESS);
        assert_eq!(driver.cuEventRecord(end, first), SUCCESS);
        assert_eq!(driver.cuEventQuery(start), SUCCESS);
        assert_eq!(driver.cuEventQuery(end), NOT_READY);
        assert_eq!(driver.cuStreamQuery(first), NOT_READY);
        assert_eq!(driver.cuStreamQuery(second), SUCCESS);
        let mut time = 0.0;
        assert_eq!(driver.cuEventElapsedTime(&mut time, start, end), NOT_READY);

        // The other stream waits for it, and the program for the other stream.
        assert_eq!(driver.cuStreamWaitEvent(second, end, 0), SUCCESS);
        assert_eq!(driver.cuEventRecord(later, second), SUCCESS);
        assert_eq!(driver.cuStreamQuery(second), NOT_READY);
        assert_eq!(driver.cuEventSynchronize(later), SUCCESS);
        assert_eq!(driver.cuEventQuery(end), SUCCESS);
        assert_eq!(driver.cuStreamQuery(first), SUCCESS);
        assert_eq!(driver.cuEventElapsedTime(&mut time, start, end), SUCCESS);
        assert!((3.6e6..3.7e6).contains(&time), "{time} ms");
    });
}

#[test]
fn the_legacy_stream_waits_for_blocking_ones_alone() {
    let test = "kernels::the_legacy_stream_waits_for_blocking_ones_alone";
    // A minute a kernel.
    isolated(test, &[("GPUMEM_SIM_KERNEL_NS", "60000000000")], |driver| {
        driver.start();
        let work = kernel(driver, "work");
        let [blocking, free] = [0, 1].map(|flags| get(|out| driver.cuStreamCreate(out, flags)));
        assert_eq!(launch(driver, work, free, 0), SUCCESS);
        assert_eq!(driver.cuStreamQuery(0), SUCCESS);
        assert_eq!(launch(driver, work, blocking, 0), SUCCESS);
        assert_eq!(driver.cuStreamQuery(0), NOT_READY);
        assert_eq!(driver.cuStreamSynchronize(0), SUCCESS);
        assert_eq!(driver.cuStreamQuery(blocking), SUCCESS);
        assert_eq!(launch(driver, work, 0, 0), SUCCESS);
        assert_eq!(driver.cuStreamQuery(blocking), NOT_READY);
        assert_eq!(driver.cuCtxSynchronize(), SUCCESS);
        assert_eq!(driver.cuStreamQuery(0), SUCCESS);
        let shape = driver.cuLaunchKernel(work, 1, 1, 1, 2048, 1, 1, 0, 0, std::ptr::null(), 0);
        assert_eq!(shape, INVALID_VALUE);
    });
}

#[test]
fn a_host_function_may_call_the_driver() {
    unsafe extern "C" fn count(calls: *mut u32) {
        // SAFETY: the test's own number.
        unsafe { *calls += 1 };
        // A lock that were still held would never be had here.
        // SAFETY: the library is loaded, and the symbol has this signature.
        unsafe {
            let library = libloading::Library::new(path()).unwrap();
            let synchronise: libloading::Symbol<'_, unsafe extern "C" fn() -> i32> =
                library.get(b"cuCtxSynchronize\0").unwrap();
            assert_eq!(synchronise(), SUCCESS);
        }
    }
    isolated(
        "kernels::a_host_function_may_call_the_driver",
        &[],
        |driver| {
            driver.start();
            let mut calls = 0;
            assert_eq!(driver.cuLaunchHostFunc(0, Some(count), &mut calls), SUCCESS);
            assert_eq!(calls, 1);
            assert_eq!(driver.cuLaunchHostFunc(0, None, &mut calls), INVALID_VALUE);
        },
    );
}
