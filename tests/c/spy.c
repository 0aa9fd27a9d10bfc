// A spy between a CUDA runtime and the shim: preloaded before it, it passes every dlsym on to the shim's and wraps the
// cuGetProcAddress that comes back, so that each look-up of the runtime is seen together with the answer.
//
// SPY_NEXT names the library whose dlsym is the next one (none: libc's). SPY_LOG names the file that gets a line a look-up:
//   name version flags result object offset
// where the answer lies `offset` bytes into `object`; "dlsym" stands for the version of what dlsym answered.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *(*dlsym_fn)(void *, const char *);
typedef int (*look_up_v1_fn)(const char *, void **, int, uint64_t);
typedef int (*look_up_v2_fn)(const char *, void **, int, uint64_t, int *);

static look_up_v1_fn next_v1;
static look_up_v2_fn next_v2;

static void log_line(const char *name, const char *version, uint64_t flags, int result, void *answer) {
    static int log = -1;
    const char *path = getenv("SPY_LOG");
    if (log < 0 && path)
        log = open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC, 0600);
    Dl_info in = {0};
    if (answer)
        dladdr(answer, &in);
    uintptr_t offset = in.dli_fbase ? (uintptr_t)answer - (uintptr_t)in.dli_fbase : 0;
    if (dprintf(log, "%s %s %lu %d %s %lx\n", *name ? name : "-", version, (unsigned long)flags, result,
                in.dli_fname ? in.dli_fname : "-", (unsigned long)offset) < 0)
        abort();
}

static int seen_v1(const char *name, void **answer, int version, uint64_t flags);
static int seen_v2(const char *name, void **answer, int version, uint64_t flags, int *status);

// Logs an answer. One that is cuGetProcAddress itself is wrapped, since the runtime goes on with that.
static void note(const char *name, void **answer, int version, uint64_t flags, int result) {
    char number[16];
    snprintf(number, sizeof number, "%d", version);
    log_line(name, number, flags, result, result ? NULL : *answer);
    if (result || strcmp(name, "cuGetProcAddress"))
        return;
    if (version < 12000) {
        next_v1 = (look_up_v1_fn)*answer;
        *answer = (void *)seen_v1;
    } else {
        next_v2 = (look_up_v2_fn)*answer;
        *answer = (void *)seen_v2;
    }
}

static int seen_v1(const char *name, void **answer, int version, uint64_t flags) {
    int result = next_v1(name, answer, version, flags);
    note(name, answer, version, flags, result);
    return result;
}

static int seen_v2(const char *name, void **answer, int version, uint64_t flags, int *status) {
    int result = next_v2(name, answer, version, flags, status);
    note(name, answer, version, flags, result);
    return result;
}

static dlsym_fn next_dlsym(void) {
    static dlsym_fn next;
    if (!next) {
        dlsym_fn libc = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!libc)
            libc = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        const char *path = getenv("SPY_NEXT");
        next = libc;
        if (path) {
            void *library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
            next = library ? (dlsym_fn)libc(library, "dlsym") : NULL;
        }
        if (!next)
            abort();
    }
    return next;
}

void *dlsym(void *handle, const char *name) {
    void *found = next_dlsym()(handle, name);
    if (!strncmp(name, "cu", 2))
        log_line(name, "dlsym", 0, 0, found);
    if (found && !strcmp(name, "cuGetProcAddress_v2")) {
        next_v2 = (look_up_v2_fn)found;
        return (void *)seen_v2;
    }
    return found;
}
