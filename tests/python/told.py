"""Does what its input tells it, a line at a time, and answers each.

`take COUNT BYTES`, `churn COUNT BYTES`: takes and gives back at once, `give`: what it took first.
"""
import ctypes
import os
import sys

import cuda

cuda.start()
taken = []


def take(size_bytes):
    address = ctypes.c_uint64()
    cuda._check(cuda._driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size_bytes)))
    taken.append(address.value)


print(os.getpid(), flush=True)
for line in sys.stdin:
    word, *numbers = line.split()
    if word == "take":
        count, size_bytes = map(int, numbers)
        for _ in range(count):
            take(size_bytes)
    elif word == "churn":
        count, size_bytes = map(int, numbers)
        for _ in range(count):
            take(size_bytes)
            cuda.free(taken.pop())
    else:
        cuda.free(taken.pop(0))
    print("done", flush=True)
