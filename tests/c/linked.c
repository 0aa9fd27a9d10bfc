// A program that was linked with the driver: its calls are bound by the loader, without any look-up of its own.
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuMemAlloc_v2(uint64_t *, size_t);

int main(void) {
    void *context = 0;
    uint64_t address = 0;
    int failed = cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
                 cuMemAlloc_v2(&address, 12345) || cuMemAlloc_v2(&address, 54321);
    printf("%d %s\n", getpid(), failed ? "failed" : "well");
    return failed;
}
