// A driver of a few functions that knows nothing of processes: after a fork it goes on in the child, which no real one does.
// With it a child can allocate, and what the shim makes of that can be seen.
#include <stdint.h>
#include <stdlib.h>

int cuInit(unsigned flags) { return 0; }

int cuDevicePrimaryCtxRetain(void **context, int device) {
    *context = (void *)0x1000;
    return 0;
}

int cuCtxSetCurrent(void *context) { return 0; }

int cuCtxGetCurrent(void **context) {
    *context = (void *)0x1000;
    return 0;
}

int cuCtxGetDevice(int *device) {
    *device = 0;
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    *address = (uint64_t)malloc(bytes);
    return *address ? 0 : 2;
}

int cuMemFree_v2(uint64_t address) {
    free((void *)address);
    return 0;
}

int cuMemUnmap(uint64_t address, size_t bytes) { return 0; }

int cuMemRelease(uint64_t handle) { return 0; }
