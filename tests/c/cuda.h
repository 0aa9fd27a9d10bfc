// The driver's functions that the C jobs call, found by dlsym as most programs do.
#pragma once
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef uint64_t CUdeviceptr;
typedef struct {
    unsigned kind, handle_types;
    struct {
        int kind, id;
    } location;
    uint64_t metadata, flags;
} CUmemAllocationProp;

// name: the function's exported symbol; the variable gets the same name.
#define CUDA_FUNCTIONS(ROW)                                                                  \
    ROW(cuInit, (unsigned))                                                                  \
    ROW(cuCtxSetCurrent, (void *))                                                           \
    ROW(cuDevicePrimaryCtxRetain, (void **, int))                                            \
    ROW(cuMemAlloc_v2, (CUdeviceptr *, size_t))                                              \
    ROW(cuMemFree_v2, (CUdeviceptr))

#define CUDA_DECLARE(name, arguments) static int(*name) arguments;
CUDA_FUNCTIONS(CUDA_DECLARE)

static void *cuda;

static void *cuda_symbol(const char *name) {
    void *found = dlsym(cuda, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(70);
    }
    return found;
}

// A call that must succeed.
#define OK(call)                                                                             \
    do {                                                                                     \
        int status = (call);                                                                 \
        if (status) {                                                                        \
            fprintf(stderr, "%s: %d\n", #call, status);                                      \
            exit(71);                                                                        \
        }                                                                                    \
    } while (0)

// Opens the driver and finds its functions.
static inline void cuda_find(void) {
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) {
        fprintf(stderr, "%s\n", dlerror());
        exit(72);
    }
#define CUDA_FIND(name, arguments) name = (int(*) arguments)cuda_symbol(#name);
    CUDA_FUNCTIONS(CUDA_FIND)
}

// And makes the first device's context current.
static inline void cuda_start(void) {
    cuda_find();
    void *context = NULL;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
}
