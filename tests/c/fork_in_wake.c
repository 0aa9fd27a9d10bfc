// Forks while another thread's first allocation has come as far as asking for memory of its own: the program has an mmap that
// waits there. Both processes allocate and say their pids.
#include "cuda.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static _Thread_local int is_first;
static atomic_int asks, forked;

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (is_first && !atomic_exchange(&asks, 1))
        while (!forked)
            sched_yield();
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

static void allocate(size_t bytes) {
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, bytes));
}

static void *allocate_first(void *unused) {
    is_first = 1;
    allocate(10);
    is_first = 0;
    return unused;
}

int main(void) {
    pthread_t thread;
    // Not cuda_start: the context that it makes would be the first. The plain driver needs none.
    cuda_find();
    OK(pthread_create(&thread, NULL, allocate_first, NULL));
    while (!asks)
        sched_yield();
    pid_t child = fork();
    if (!child) {
        allocate(30);
        allocate(40);
        printf("%d\n", getpid());
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        return 74;
    forked = 1;
    OK(pthread_join(thread, NULL));
    allocate(20);
    printf("%d\n", getpid());
    return 0;
}
