// A driver of a few functions that runs a function of the program's inside its allocation and its free, which may leave it in
// any way, and that counts the calls of threads which the program did not make.
#include <stdint.h>
#include <stdlib.h>

#include <atomic>

static std::atomic<void (*)()> in_alloc, in_free;
static std::atomic<int> foreign;
static thread_local bool mine;

#define CALLED() (mine ? 0 : foreign.fetch_add(1))

extern "C" {
void odd_inside(void (*alloc)(), void (*free)()) {
    in_alloc = alloc;
    in_free = free;
}

void odd_mine() { mine = true; }

int odd_foreign() { return foreign; }

int cuInit(unsigned) {
    CALLED();
    return 0;
}

int cuDevicePrimaryCtxRetain(void **context, int) {
    CALLED();
    *context = (void *)0x1000;
    return 0;
}

int cuCtxGetCurrent(void **context) {
    CALLED();
    *context = (void *)0x1000;
    return 0;
}

int cuCtxGetDevice(int *device) {
    CALLED();
    *device = 0;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    CALLED();
    *device = ordinal;
    return 0;
}

int cuDeviceGetUuid_v2(void *, int) {
    CALLED();
    return 801;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    CALLED();
    if (auto inside = in_alloc.load())
        inside();
    *address = (uint64_t)malloc(bytes);
    return *address ? 0 : 2;
}

int cuMemFree_v2(uint64_t address) {
    CALLED();
    if (auto inside = in_free.load())
        inside();
    free((void *)address);
    return 0;
}
}
