"""Allocates from many kinds of Python code and prints, a line each, the address and the stack that it was allocated from:
file, line and qualified name, innermost first."""
import asyncio
import ctypes
import functools
import json
import os
import sys
import threading
import traceback

import cuda

cuda.start()
_allocate = cuda._driver.cuMemAlloc_v2
_allocate.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
_said = threading.Lock()


def stack():
    """The caller's stack."""
    caller = sys._getframe(1)
    frames = [
        (frame.f_code.co_filename, line, frame.f_code.co_qualname) for frame, line in traceback.walk_stack(caller)
    ]
    plain = [(entry.filename, entry.lineno) for entry in reversed(traceback.extract_stack(caller))]
    assert plain == [(file, line) for file, line, _ in frames]
    return frames


def allocate():
    address = ctypes.c_uint64()
    # Both calls are in one line, so that both stacks have its number.
    status, frames = _allocate(ctypes.byref(address), 4096), stack()
    assert status == 0
    with _said:
        print(json.dumps({"address": address.value, "frames": frames}), flush=True)


def inner(depth):
    if depth:
        return inner(depth - 1)
    allocate()


class Model:
    def forward(self):
        self.layer()

    @staticmethod
    def layer():
        def nested():
            allocate()

        nested()

    @functools.lru_cache
    def cached(self):
        allocate()

    def __enter__(self):
        allocate()
        return self

    def __exit__(self, *_):
        allocate()

    @property
    def weights(self):
        return allocate()


def numbers():
    for number in range(2):
        allocate()
        yield number


async def handler():
    await asyncio.sleep(0)
    allocate()


async def server():
    await asyncio.gather(handler(), handler())


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
def compare(left, right):
    allocate()
    return left[0] - right[0]


def through_c():
    values = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(values, 2, ctypes.sizeof(ctypes.c_int), compare)


def catching():
    try:
        raise ValueError
    except ValueError:
        allocate()
    finally:
        allocate()


def in_a_long_expression():
    return (
        1,
        allocate(),
        [allocate() for _ in range(2)],
        {number: allocate() for number in range(2)},
        (lambda: allocate())(),
        max([1, 2], key=lambda _: allocate() or 1),
    )


allocate()
inner(0)
inner(60)
Model().forward()
Model().cached()
with Model() as model:
    model.weights
list(numbers())
sorted([3, 1], key=lambda value: allocate() or value)
asyncio.run(server())
through_c()
catching()
in_a_long_expression()
exec(compile("def made():\n    allocate()\n\nmade()", "<made>", "exec"), globals())
threads = [threading.Thread(target=inner, args=(count,)) for count in (1, 2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps({"pid": os.getpid()}))
