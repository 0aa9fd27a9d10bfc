/* A program that is linked with the runtime's archive: it takes memory, and says what is left before and after. */
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemGetInfo(size_t *, size_t *);
int cudaRuntimeGetVersion(int *);

int main(void) {
    size_t before = 0, during = 0, after = 0, total = 0;
    int version = 0;
    void *memory = NULL;
    if (cudaRuntimeGetVersion(&version) || cudaMemGetInfo(&before, &total) || cudaMalloc(&memory, (size_t)64 << 20) ||
        cudaMemGetInfo(&during, &total) || cudaFree(memory) || cudaMemGetInfo(&after, &total)) {
        return 1;
    }
    printf("%d %zu %zu\n", version, before - during, before - after);
    return 0;
}
