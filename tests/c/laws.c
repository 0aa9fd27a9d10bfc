// Calls of every kind, right and wrong; prints what each gave: result, errno, out-parameters, dlerror. The same must come out
// with the shim and without it, so nothing is printed that two runs may differ in (addresses become yes or no).
#include "cuda.h"

#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

// Prints a call's result, errno and an out-parameter.
#define SHOW(out, call)                                                                      \
    do {                                                                                     \
        out = UNTOUCHED;                                                                     \
        errno = 77;                                                                          \
        int status = (call);                                                                 \
        int after = errno;                                                                   \
        printf("%s: %d errno %d %s\n", #call, status, after,                                 \
               out == UNTOUCHED ? "untouched" : out ? "written" : "zero");                   \
    } while (0)

static void calls(void) {
    int (*pitched)(CUdeviceptr *, size_t *, size_t, size_t, unsigned) = cuda_symbol("cuMemAllocPitch_v2");
    int (*managed)(CUdeviceptr *, size_t, unsigned) = cuda_symbol("cuMemAllocManaged");
    int (*alloc_async)(CUdeviceptr *, size_t, void *) = cuda_symbol("cuMemAllocAsync");
    int (*free_async)(CUdeviceptr, void *) = cuda_symbol("cuMemFreeAsync");
    int (*create)(uint64_t *, size_t, const CUmemAllocationProp *, uint64_t) = cuda_symbol("cuMemCreate");
    int (*release)(uint64_t) = cuda_symbol("cuMemRelease");
    int (*retain)(uint64_t *, void *) = cuda_symbol("cuMemRetainAllocationHandle");
    int (*reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t) = cuda_symbol("cuMemAddressReserve");
    int (*unreserve)(CUdeviceptr, size_t) = cuda_symbol("cuMemAddressFree");
    int (*map)(CUdeviceptr, size_t, size_t, uint64_t, uint64_t) = cuda_symbol("cuMemMap");
    int (*unmap)(CUdeviceptr, size_t) = cuda_symbol("cuMemUnmap");
    int (*create_pool)(void **, const void *) = cuda_symbol("cuMemPoolCreate");
    int (*destroy_pool)(void *) = cuda_symbol("cuMemPoolDestroy");
    int (*create_context)(void **, unsigned, int) = cuda_symbol("cuCtxCreate_v2");
    int (*destroy_context)(void *) = cuda_symbol("cuCtxDestroy_v2");
    CUmemAllocationProp properties = {.kind = 1, .location = {1, 0}};
    const size_t granule = 2 << 20;
    CUdeviceptr address, range;
    uint64_t handle, pitch;
    uint64_t none = 0;

    SHOW(address, cuMemAlloc_v2(&address, 1000));
    CUdeviceptr kept = address;
    SHOW(address, cuMemAlloc_v2(&address, 0));
    SHOW(address, cuMemAlloc_v2(&address, (size_t)1 << 60));
    // The third right call is made to fail.
    SHOW(address, cuMemAlloc_v2(&address, 4000));
    SHOW(none, cuMemAlloc_v2(NULL, 4000));
    SHOW(pitch, pitched(&address, &pitch, 1000, 10, 4));
    printf("pitch %lu\n", (unsigned long)pitch);
    SHOW(pitch, pitched(&address, &pitch, 1000, 10, 3));
    SHOW(address, pitched(&address, NULL, 1000, 10, 4));
    SHOW(pitch, pitched(NULL, &pitch, 1000, 10, 4));
    SHOW(address, managed(&address, 1000, 1));
    SHOW(address, managed(&address, 1000, 9));
    SHOW(none, managed(NULL, 1000, 1));
    SHOW(address, alloc_async(&address, 1000, NULL));
    SHOW(none, free_async(address, NULL));
    SHOW(address, alloc_async(&address, 1000, (void *)0x1234));
    SHOW(none, alloc_async(NULL, 1000, NULL));

    // A free that is made to fail, then the same again; nothing, and what nobody has.
    SHOW(none, cuMemFree_v2(kept));
    SHOW(none, cuMemFree_v2(kept));
    SHOW(none, cuMemFree_v2(0));
    SHOW(none, cuMemFree_v2(0x4242));
    SHOW(none, cuMemFree_v2(kept));
    SHOW(none, free_async(0x4242, NULL));

    SHOW(handle, create(&handle, granule, &properties, 0));
    uint64_t physical = handle;
    SHOW(handle, create(&handle, 3, &properties, 0));
    SHOW(handle, create(&handle, granule, NULL, 0));
    SHOW(none, create(NULL, granule, &properties, 0));
    SHOW(address, reserve(&address, 2 * granule, 0, 0, 0));
    range = address;
    SHOW(address, reserve(&address, 7, 0, 0, 0));
    SHOW(none, reserve(NULL, granule, 0, 0, 0));
    SHOW(none, map(range, granule, 0, physical, 0));
    SHOW(none, map(range, granule, 0, physical, 0));
    SHOW(handle, retain(&handle, (void *)range));
    SHOW(handle, retain(&handle, (void *)0x4242));
    SHOW(none, retain(NULL, (void *)range));
    SHOW(none, release(physical));
    SHOW(none, unmap(range, 2 * granule));
    SHOW(none, unreserve(range, 2 * granule));
    SHOW(none, unmap(range, granule));
    SHOW(none, release(physical));
    SHOW(none, release(physical));
    SHOW(none, unreserve(range, 2 * granule));

    void *pool = NULL, *context = NULL;
    SHOW(none, create_pool(&pool, NULL));
    SHOW(none, create_pool(NULL, NULL));
    SHOW(none, destroy_pool((void *)0x4242));
    SHOW(none, create_context(NULL, 0, 0));
    SHOW(none, create_context(&context, 0, 99));
    SHOW(none, create_context(&context, 0, 0));
    SHOW(none, destroy_context((void *)0x4242));
    SHOW(none, destroy_context(context));
}

static void say_dlerror(const char *when) {
    const char *said = dlerror();
    // The path of the driver differs from run to run, not what is said of it.
    const char *from = said ? strstr(said, "undefined symbol") : NULL;
    printf("%s: %s\n", when, from ? from : said ? said : "nothing");
}

static void errors_of_the_loader(void) {
    CUdeviceptr address = 0;
    say_dlerror("at first");
    printf("%d\n", dlsym(cuda, "cuMemNoSuchThing") == NULL);
    say_dlerror("after a name that begins like CUDA's");
    printf("%d\n", dlsym(RTLD_DEFAULT, "cudnnCreate") == NULL);
    say_dlerror("after another library's name");
    printf("%d\n", dlsym(RTLD_DEFAULT, "no_such_thing") == NULL);
    say_dlerror("after a name that nobody has");
    say_dlerror("asked again");
    printf("%d\n", dlsym(RTLD_DEFAULT, "no_such_thing") == NULL);
    OK(cuMemAlloc_v2(&address, 100));
    OK(cuMemFree_v2(address));
    say_dlerror("after watched calls");
    printf("%d\n", dlsym(RTLD_DEFAULT, "no_such_thing") == NULL);
    printf("%d\n", dlsym(cuda, "cuMemAlloc_v2") != NULL);
    say_dlerror("after a good look-up of a watched name");
    printf("%d\n", dlvsym(cuda, "cuMemNoSuchThing", "NO_SUCH_VERSION") == NULL);
    say_dlerror("after a versioned look-up in vain");
    printf("%d\n", dlvsym(RTLD_DEFAULT, "getpid", "NO_SUCH_VERSION") == NULL);
    say_dlerror("after a version that nobody has");
}

static void look_ups_by_version(void) {
    int (*find)(const char *, void **, int, uint64_t, int *) = cuda_symbol("cuGetProcAddress_v2");
    void *found;
    int why;
#define LOOK(name, version, flags)                                                           \
    do {                                                                                     \
        found = (void *)1;                                                                   \
        why = 9;                                                                             \
        int status = find(name, &found, version, flags, &why);                               \
        printf("look up %s %d %d: %d, why %d, %s\n", name, version, flags, status, why,      \
               !found ? "null" : found == (void *)1 ? "untouched" : "found");                \
    } while (0)
    LOOK("", 0, 0);
    LOOK("cuMemAlloc", 3020, 0);
    LOOK("cuMemAlloc", 1000, 0);
    LOOK("cuMemAlloc", 3020, 99);
    LOOK("cuMemAllocAsync", 11020, 2);
    LOOK("cuMemNoSuchThing", 12000, 0);
    printf("without why: %d\n", find("cuMemFree", &found, 12000, 0, NULL));
    printf("without an answer: %d\n", find("cuMemFree", NULL, 12000, 0, &why));
    printf("without a name: %d\n", find(NULL, &found, 12000, 0, &why));
}

int main(void) {
    cuda_start();
    errors_of_the_loader();
    calls();
    look_ups_by_version();
    return 0;
}
