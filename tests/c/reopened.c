// Asks whether there is a driver, and closes it; something else may then take its place. Afterwards a library that is linked
// to the driver (the argument) allocates, and so does the program itself.
#include "cuda.h"
#include <link.h>
#include <sys/mman.h>

int main(int count, char **words) {
    void *probe = dlopen("libcuda.so.1", RTLD_NOW);
    struct link_map *map;
    if (count < 2 || !probe || !dlsym(probe, "cuMemAlloc_v2") || dlinfo(probe, RTLD_DI_LINKMAP, &map))
        return 74;
    void *place = (void *)map->l_addr;
    if (dlclose(probe))
        return 75;
    // Where nothing is mapped any more, the driver cannot come back to.
    mmap(place, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    void *user = dlopen(words[1], RTLD_NOW);
    int (*use)(size_t) = user ? (int (*)(size_t))dlsym(user, "use") : NULL;
    if (!use)
        return 76;
    printf("linked: %d\n", use(1000));
    cuda_start();
    CUdeviceptr address = 0;
    printf("looked up: %d\n", cuMemAlloc_v2(&address, 2000));
    return 0;
}
