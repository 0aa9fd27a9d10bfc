// A library that is linked to the driver.
#include <stddef.h>
#include <stdint.h>

int cuMemAlloc_v2(uint64_t *address, size_t bytes);

int use(size_t bytes) {
    uint64_t address = 0;
    int status = cuMemAlloc_v2(&address, bytes);
    return status ? status : address ? 0 : -1;
}
