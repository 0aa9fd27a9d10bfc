// Finds the functions of a library whose names begin like the driver's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
    void *self = dlopen(0, RTLD_NOW);
    const char *names[] = {"cudnnCreate", "cublasCreate_v2", "cudaMallocLookalike", "curl_easy_init", "cu", "cuMemAlloc_v2"};
    for (int at = 0; at < 6; at++) {
        int (*found)(void) = (int (*)(void))dlsym(library, names[at]);
        printf("%s %d %d %d\n", names[at], found ? found() : 0, dlsym(self, names[at]) != 0,
               dlsym(RTLD_DEFAULT, names[at]) != 0);
    }
    return 0;
}
