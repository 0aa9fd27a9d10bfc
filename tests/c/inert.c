// Says what a process is: its threads, its open files, its sockets; then makes look-ups that have nothing to do with CUDA, and
// with an argument those that have: it opens the driver, starts it, and looks functions up, but makes no context.
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
    }
    say_what_i_am();
    return 0;
}
