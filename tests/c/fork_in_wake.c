// Forks whenever another thread's first allocation asks the system for something of its own: memory, or to hear of forks. The
// program has such functions itself, and they wait there until there is a child. Each child allocates twice, and so does the
// program. All say their pids, the program last.
#include "cuda.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static _Thread_local int is_first;
static atomic_int asked, forked, done;

static void wait_for_fork(void) {
    if (!is_first)
        return;
    int number = ++asked;
    while (forked < number)
        sched_yield();
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
    wait_for_fork();
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

int __register_atfork(void (*before)(void), void (*parent)(void), void (*child)(void), void *object) {
    int (*next)(void (*)(void), void (*)(void), void (*)(void), void *) = dlsym(RTLD_NEXT, "__register_atfork");
    wait_for_fork();
    return next(before, parent, child, object);
}

static void allocate(size_t bytes) {
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, bytes));
}

static void *allocate_first(void *unused) {
    is_first = 1;
    allocate(10);
    is_first = 0;
    done = 1;
    return unused;
}

static void fork_one(void) {
    pid_t child = fork();
    if (!child) {
        allocate(30);
        allocate(40);
        printf("%d\n", getpid());
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        exit(74);
}

int main(void) {
    pthread_t thread;
    // Not cuda_start: the context that it makes would be the first. The plain driver needs none.
    cuda_find();
    OK(pthread_create(&thread, NULL, allocate_first, NULL));
    while (!done) {
        if (forked < asked) {
            fork_one();
            forked++;
        }
        sched_yield();
    }
    OK(pthread_join(thread, NULL));
    allocate(20);
    printf("%d\n", getpid());
    return 0;
}
