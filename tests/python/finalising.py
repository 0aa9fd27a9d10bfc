"""Memory that globals and an atexit handler give back when the interpreter ends."""
import atexit
import ctypes
import os

import cuda

cuda.start()
allocate = cuda._driver.cuMemAlloc_v2
allocate.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]


class Buffer:
    def __init__(self, size_bytes, free=cuda._free):
        self.address = ctypes.c_uint64()
        self.free = free
        if allocate(ctypes.byref(self.address), size_bytes):
            raise MemoryError

    def __del__(self):
        self.free(self.address)


weights = Buffer(6 << 20)
cache = [Buffer(1 << 20) for _ in range(4)]
# A cycle: only the last collection of the interpreter, or its end, frees it.
knot = [Buffer(2 << 20)]
knot.append(knot)
temporary = Buffer(50 << 20)
del temporary
print(os.getpid(), flush=True)
