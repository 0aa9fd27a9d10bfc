"""One allocation, on any Python."""
import ctypes
import os

import cuda


def load():
    address = ctypes.c_uint64()
    cuda._check(cuda._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(3 << 20)))


cuda.start()
load()
print(os.getpid())
