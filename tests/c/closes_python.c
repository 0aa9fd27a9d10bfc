// Opens Python's library, allocates from within Python, ends Python, closes the library and allocates again; twice.
//
// Usage: closes_python LIBPYTHON
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static int (*alloc)(uint64_t *, size_t);

void allocate(void) {
    uint64_t address;
    if (alloc(&address, 1 << 20))
        printf("an allocation failed\n");
}

int main(int count, char **words) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (count != 2 || !driver)
        return 2;
    void *context;
    ((int (*)(unsigned))dlsym(driver, "cuInit"))(0);
    ((int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
    ((int (*)(void *))dlsym(driver, "cuCtxSetCurrent"))(context);
    alloc = (int (*)(uint64_t *, size_t))dlsym(driver, "cuMemAlloc_v2");
    for (int i = 0; i < 2; i++) {
        void *python = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
        if (!python)
            return 2;
        ((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
        // A call through the interpreter is how it is met.
        void *(*string)(const char *) = (void *(*)(const char *))dlsym(python, "PyUnicode_FromString");
        int (*at_exit)(void (*)(void)) = (int (*)(void (*)(void)))dlsym(python, "Py_AtExit");
        if (!string("") || at_exit(allocate))
            return 2;
        ((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
        dlclose(python);
        allocate();
    }
    printf("went on\n");
    return 0;
}
