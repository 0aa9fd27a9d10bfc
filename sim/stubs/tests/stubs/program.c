/* Opens a library that is linked with NVIDIA's, as Python opens PyTorch, and then NVIDIA's runtime by its path, as
   Python packages do. Says what each way found, and whether NVIDIA's libraries are mapped. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Whether a file is mapped. */
static int mapped(const char *path) {
    char line[4096];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        found |= strstr(line, path) != NULL;
    }
    if (maps) {
        fclose(maps);
    }
    return found;
}

typedef int (*run)(void);
typedef int (*count)(int *);

int main(int argument_count, char **arguments) {
    if (argument_count < 4) {
        return 2;
    }
    void *plugin = dlopen(arguments[1], RTLD_NOW), *runtime = dlopen(arguments[2], RTLD_NOW);
    if (!plugin || !runtime) {
        puts(dlerror());
        return 1;
    }
    int devices = 0, linked = ((run)dlsym(plugin, "plugin_run"))();
    int opened = ((count)dlsym(runtime, "cudaGetDeviceCount"))(&devices);
    /* What is not simulated is not found, as ever. */
    int nothing = dlopen("/nowhere/libcudart.so.12.1", RTLD_NOW) == NULL && dlerror() != NULL;
    printf("%d %d %d %d %d%d\n", linked, opened, devices, nothing, mapped(arguments[2]), mapped(arguments[3]));
    return 0;
}
