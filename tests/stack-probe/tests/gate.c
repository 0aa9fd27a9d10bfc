// Stops a thread in the middle of a walk over Python frames, until it is told to go on.
//
// Preloaded, so that the probe's reads through the kernel come here.
#define _GNU_SOURCE
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
