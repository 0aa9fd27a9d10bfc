"""A thread whose free is under way when the interpreter ends, and fails. The argument: the library of that free."""
import ctypes
import os
import sys
import threading

import cuda

late = ctypes.CDLL(sys.argv[1])
late.free_late.argtypes = [ctypes.c_uint64]
late.wait_for_the_free_at_exit()

cuda.start()
address = ctypes.c_uint64()
cuda._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(1 << 20))
print(os.getpid(), flush=True)
threading.Thread(target=late.free_late, args=(address.value,), daemon=True).start()
cuda._driver.wait_until_asked_to_free()
