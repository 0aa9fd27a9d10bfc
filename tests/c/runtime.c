// A program of the CUDA runtime: one allocation. What the runtime answers is not the point; what it looks up is.
#include <stdio.h>

int cudaMalloc(void **address, unsigned long bytes);

int main(void) {
    void *address = 0;
    printf("cudaMalloc %d\n", cudaMalloc(&address, 1 << 20));
    return 0;
}
