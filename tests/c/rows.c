// Looks functions up with the cuGetProcAddress that its argument names, as its input says, a line each: "name dlsym 0" or "name version flags". Prints the line again with the
// result and where the answer lies: result, object, offset in it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!cuda) {
        fprintf(stderr, "%s\n", dlerror());
        return 70;
    }
    // The first version has no fifth argument, and ignores it.
    int (*find)(const char *, void **, int, uint64_t, int *) =
        (int (*)(const char *, void **, int, uint64_t, int *))dlsym(cuda, count > 1 ? words[1] : "");
    if (!find)
        return 71;
    char name[128], version[32];
    unsigned long flags;
    while (scanf("%127s %31s %lu", name, version, &flags) == 3) {
        void *found = NULL;
        int result = 0;
        if (strcmp(version, "dlsym"))
            result = find(name, &found, atoi(version), flags, NULL);
        else
            found = dlsym(cuda, name);
        Dl_info in = {0};
        if (found)
            dladdr(found, &in);
        printf("%s %s %lu %d %s %lx\n", name, version, flags, result, in.dli_fname ? in.dli_fname : "-",
               in.dli_fbase ? (unsigned long)((char *)found - (char *)in.dli_fbase) : 0);
    }
    return 0;
}
