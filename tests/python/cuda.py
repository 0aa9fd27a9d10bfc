"""The simulated or real driver through ctypes, for jobs in Python."""
import ctypes

_driver = ctypes.CDLL("libcuda.so.1")
_free = _driver.cuMemFree_v2
_free.argtypes = [ctypes.c_uint64]


def _check(status):
    if status:
        raise RuntimeError(f"the driver says {status}")


def start():
    context = ctypes.c_void_p()
    _check(_driver.cuInit(0))
    _check(_driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
    _check(_driver.cuCtxSetCurrent(context))


def free(address):
    _check(_free(address))
