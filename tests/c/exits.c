// Leaves memory alive, some of which an exit handler of its own gives back. Says its pid.
#include "cuda.h"

static CUdeviceptr for_the_handler;

static void give_back(void) {
    OK(cuMemFree_v2(for_the_handler));
    CUdeviceptr late = 0;
    OK(cuMemAlloc_v2(&late, 5 << 20));
}

int main(void) {
    // Before the first allocation: the handler runs after everything that was registered later.
    atexit(give_back);
    cuda_start();
    CUdeviceptr kept = 0, gone = 0;
    OK(cuMemAlloc_v2(&for_the_handler, 3 << 20));
    OK(cuMemAlloc_v2(&kept, 1 << 20));
    OK(cuMemAlloc_v2(&gone, 7 << 20));
    OK(cuMemFree_v2(gone));
    printf("%d\n", getpid());
    return 0;
}
