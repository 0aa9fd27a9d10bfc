// A thread that calls a function from two places in turn, with equal frames.
#include <pthread.h>

typedef void (*callback_t)(int);

struct job {
    callback_t callback;
    int count;
};

__attribute__((noinline)) static void first(callback_t callback) {
    callback(0);
    __asm__ volatile("");
}

__attribute__((noinline)) static void second(callback_t callback) {
    callback(1);
    __asm__ volatile("");
}

static void *work(void *argument) {
    struct job *job = argument;
    for (int i = 0; i < job->count; i += 2) {
        first(job->callback);
        second(job->callback);
    }
    return 0;
}

int run(callback_t callback, int count) {
    struct job job = {callback, count};
    pthread_t thread;
    return pthread_create(&thread, 0, work, &job) || pthread_join(thread, 0);
}
