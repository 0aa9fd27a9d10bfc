"""Takes COUNT blocks of 16 MiB of the driver, then runs the rest of its arguments, if any, while it holds them.

Ends with status 2 where the driver is out of memory.
"""
import ctypes
import subprocess
import sys

driver = ctypes.CDLL("libcuda.so.1")
context, address = ctypes.c_void_p(), ctypes.c_uint64()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0
for _ in range(int(sys.argv[1])):
    status = driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(16 << 20))
    if status:
        print("out of memory" if status == 2 else f"the driver says {status}")
        sys.exit(2)
if sys.argv[2:]:
    sys.exit(subprocess.call(sys.argv[2:]))
