// Says what a process is: its threads, its open files, its sockets; then makes look-ups that have nothing to do with CUDA, and
// with an argument those that have: it opens the driver, starts it, and looks functions up, but makes no context. With the
// argument "frees" it also gives back what it never had, and fails to allocate.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int entries(const char *folder) {
    int count = 0;
    DIR *open = opendir(folder);
    for (struct dirent *entry; (entry = readdir(open));)
        count += entry->d_name[0] != '.';
    closedir(open);
    return count;
}

static void say_what_i_am(void) {
    printf("threads %d\n", entries("/proc/self/task"));
    // One of them is the folder itself, open while it is read.
    printf("files %d\n", entries("/proc/self/fd"));
    int handled = 0;
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        handled += !sigaction(number, NULL, &action) && action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
    }
    printf("signal handlers %d\n", handled);
}

static void calls_in_vain(void *cuda) {
    uint64_t address = 0;
    int (*allocate)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))dlsym(cuda, "cuMemAlloc_v2");
    int (*free_memory)(uint64_t) = (int (*)(uint64_t))dlsym(cuda, "cuMemFree_v2");
    int (*unmap)(uint64_t, size_t) = (int (*)(uint64_t, size_t))dlsym(cuda, "cuMemUnmap");
    int (*release)(uint64_t) = (int (*)(uint64_t))dlsym(cuda, "cuMemRelease");
    printf("allocate %d, free %d", allocate(&address, 64), free_memory(0x1234));
    printf(", free nothing %d, unmap %d, release %d\n", free_memory(0), unmap(0x4000, 4096), release(7));
}

int main(int count, char **words) {
    say_what_i_am();
    void *pid = dlsym(RTLD_DEFAULT, "getpid");
    printf("getpid %d\n", ((int (*)(void))pid)() == getpid());
    printf("nothing %d\n", dlsym(RTLD_DEFAULT, "no_such_function") == NULL);
    printf("not CUDA's %d\n", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL && dlsym(RTLD_DEFAULT, "cuInit") == NULL);
    if (count > 1) {
        void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
        int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
        int (*devices)(int *) = (int (*)(int *))dlsym(cuda, "cuDeviceGetCount");
        int (*find)(const char *, void **, int, uint64_t) =
            (int (*)(const char *, void **, int, uint64_t))dlsym(cuda, "cuGetProcAddress");
        int number = 0;
        void *found = NULL;
        printf("init %d", init(0));
        printf(", devices %d", devices(&number));
        printf(" %d, look up %d\n", number, find("cuMemAlloc", &found, 12000, 0));
        printf("watched %d\n", dlsym(cuda, "cuMemAlloc_v2") == found);
        if (!strcmp(words[1], "frees"))
            calls_in_vain(cuda);
    }
    say_what_i_am();
    return 0;
}
