/* Makes communicators, and says how much of the device is taken by one of two ranks, by one that is alone, and when both
   are ended. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

typedef struct {
    char bytes[128];
} identity;

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *nccl = dlopen("libnccl.so.2", RTLD_NOW);
    if (!driver || !nccl) {
        puts(dlerror());
        return 1;
    }
    int (*start)(unsigned) = dlsym(driver, "cuInit");
    int (*retain)(void **, int) = dlsym(driver, "cuDevicePrimaryCtxRetain");
    int (*set)(void *) = dlsym(driver, "cuCtxSetCurrent");
    int (*info)(size_t *, size_t *) = dlsym(driver, "cuMemGetInfo_v2");
    int (*make)(void **, int, identity, int) = dlsym(nccl, "ncclCommInitRank");
    int (*end)(void *) = dlsym(nccl, "ncclCommDestroy");

    size_t before = 0, with_two = 0, with_one = 0, after = 0, total = 0;
    void *context = NULL, *two = NULL, *one = NULL;
    identity id = {{0}};
    int failed = start(0) || retain(&context, 0) || set(context) || info(&before, &total);
    failed = failed || make(&two, 2, id, 0) || info(&with_two, &total);
    failed = failed || make(&one, 1, id, 0) || info(&with_one, &total);
    failed = failed || end(one) || end(two) || info(&after, &total);
    printf("%zu %zu %zu\n", before - with_two, with_two - with_one, before - after);
    return failed;
}
