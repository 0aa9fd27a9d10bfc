// Stops a thread in the middle of a walk over Python frames, until it is told to go on.
//
// Preloaded, so that the probe's reads through the kernel come here.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static __thread int enter = -1, leave = -1;
static int calls;

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long locals, const struct iovec *remote,
                         unsigned long remotes, unsigned long flags) {
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    if (enter >= 0) {
        char byte = 0;
        int told = enter;
        enter = -1;
        if (write(told, &byte, 1) != 1 || read(leave, &byte, 1) != 1)
            _exit(9);
    }
    return syscall(SYS_process_vm_readv, pid, local, locals, remote, remotes, flags);
}

int gate_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

static void *without_frames(void *capture) {
    int (*ensure)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "PyGILState_Ensure");
    void (*release)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "PyGILState_Release");
    void *(*save)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "PyEval_SaveThread");
    void (*restore)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "PyEval_RestoreThread");
    static char text[1 << 16];
    int state = ensure();
    void *saved = save();
    long before = gate_calls();
    ((size_t (*)(int, char *, size_t))capture)(0, text, sizeof text);
    long made = gate_calls() - before;
    restore(saved);
    release(state);
    return (void *)made;
}

// Captures on a thread that has a state of Python's, no frames and not the GIL, as a thread of a backward pass; gives the reads
// through the kernel that it took. To be called without the GIL.
long gate_without_frames(void *capture) {
    pthread_t thread;
    void *made = (void *)-1;
    if (pthread_create(&thread, 0, without_frames, capture) == 0)
        pthread_join(thread, &made);
    return (long)made;
}

// Captures with the gate shut in the walk: writes a byte to `entered` there and waits for one from `go`. Writes the number of
// Python frames, as one byte, to `done`, and does not come back to Python.
void gate_capture(size_t (*capture)(int, char *, size_t), int entered, int go, int done) {
    static char text[1 << 16];
    enter = entered;
    leave = go;
    size_t size = capture(0, text, sizeof text);
    char frames = 0;
    for (size_t i = 0; i < size && i < sizeof text; i++)
        frames += text[i] == 'P' && (i == 0 || text[i - 1] == '\n');
    if (write(done, &frames, 1) != 1)
        _exit(9);
    for (;;)
        pause();
}
