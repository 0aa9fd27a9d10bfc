// A program that embeds Python and ends it on a thread of its own, while its first thread is inside of Python and captures. The
// first thread is stopped where it stands, and goes on when all is freed.
//
// Usage: embedded LIBPYTHON PROBE
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *python, *probe;
static int begun[2], inside[2];
static atomic_int over;
static pthread_t first;

static void *of(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s\n", name);
        exit(1);
    }
    return found;
}

// Called by the Python code, with the GIL given back.
void work(void) {
    unsigned (*id)(int) = of(probe, "probe_id");
    int (*collecting)(void) = of(probe, "probe_is_collecting");
    char byte = 0;
    if (id(0) < 2 || write(inside[1], &byte, 1) != 1)
        _exit(1);
    while (!over) {
        id(0);
        collecting();
    }
    id(0);
    printf("went on\n");
    fflush(stdout);
    _exit(0);
}

static void stand_still(int unused) {
    (void)unused;
    while (!over)
        sched_yield();
}

static void *owner(void *unused) {
    char byte = 0;
    ((void (*)(int))of(python, "Py_InitializeEx"))(0);
    void *saved = ((void *(*)(void))of(python, "PyEval_SaveThread"))();
    if (write(begun[1], &byte, 1) != 1 || read(inside[0], &byte, 1) != 1)
        _exit(1);
    ((void (*)(void *))of(python, "PyEval_RestoreThread"))(saved);
    int (*end)(void) = of(python, "Py_FinalizeEx");
    pthread_kill(first, SIGUSR1);
    end();
    over = 1;
    for (;;)
        pause();
    return unused;
}

int main(int count, char **words) {
    if (count != 3)
        return 2;
    python = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    probe = dlopen(words[2], RTLD_NOW);
    if (!python || !probe)
        return 1;
    int (*run)(const char *) = of(python, "PyRun_SimpleString");
    char byte;
    pthread_t thread;
    first = pthread_self();
    signal(SIGUSR1, stand_still);
    if (pipe(begun) || pipe(inside) || pthread_create(&thread, 0, owner, 0) || read(begun[0], &byte, 1) != 1)
        return 1;
    ((int (*)(void))of(python, "PyGILState_Ensure"))();
    run("import ctypes\n"
        "def deep(n):\n"
        "    return deep(n - 1) if n else ctypes.CDLL(None).work()\n"
        "deep(20)\n");
    return 1;
}
