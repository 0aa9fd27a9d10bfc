// Another preloaded tool, before the shim: counts the program's allocations and passes them on to whoever is next.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static int seen;

int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
    seen++;
    return ((int (*)(uint64_t *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2"))(address, bytes);
}

__attribute__((destructor)) static void tell(void) { printf("the tool saw %d\n", seen); }
