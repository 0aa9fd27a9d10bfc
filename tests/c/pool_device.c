// A block from a pool of the second device, while the first one is current. Says its pid.
#include "cuda.h"

struct {
    unsigned kind, handle_types;
    struct {
        int kind, id;
    } location;
    void *security;
    size_t max_bytes;
    unsigned char reserved[56];
} properties = {.kind = 1, .location = {1, 1}};

int main(void) {
    cuda_start();
    int (*create)(void **, const void *) = cuda_symbol("cuMemPoolCreate");
    int (*allocate)(CUdeviceptr *, size_t, void *, void *) = cuda_symbol("cuMemAllocFromPoolAsync");
    void *pool = NULL;
    CUdeviceptr address = 0;
    OK(create(&pool, &properties));
    OK(allocate(&address, 3 << 20, pool, NULL));
    printf("%d\n", getpid());
    return 0;
}
