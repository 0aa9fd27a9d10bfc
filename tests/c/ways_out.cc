// Leaves driver calls by an exception, by longjmp, by the end of the thread and by its cancellation, and goes on; then ends
// while another thread is inside a free that does not return. Prints the calls of threads that are not its own.
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>

extern "C" {
void odd_inside(void (*alloc)(), void (*free)());
void odd_mine();
int odd_foreign();
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(void **, int);
int cuMemAlloc_v2(uint64_t *, size_t);
int cuMemFree_v2(uint64_t);
}

static jmp_buf back;
static std::atomic<bool> inside;
static uint64_t last;

static void must(bool held, const char *what) {
    if (!held) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}

static void alloc(size_t bytes) {
    odd_inside(nullptr, nullptr);
    must(cuMemAlloc_v2(&last, bytes) == 0, "an allocation failed");
}

static void leave_by_exception() { throw 7; }

static void leave_by_jump() { longjmp(back, 1); }

static void leave_by_end_of_thread() { pthread_exit(nullptr); }

static void stay() {
    inside = true;
    for (;;)
        pause();
}

static void *allocate(void *) {
    odd_mine();
    uint64_t address;
    cuMemAlloc_v2(&address, 99);
    must(false, "a call came back");
    return nullptr;
}

static void *release(void *address) {
    odd_mine();
    cuMemFree_v2((uint64_t)address);
    must(false, "a call came back");
    return nullptr;
}

static void wait_until_inside() {
    while (!inside)
        sched_yield();
    inside = false;
}

int main() {
    odd_mine();
    void *context;
    must(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, 0) == 0, "no context");
    alloc(1000);
    uint64_t first = last;

    odd_inside(leave_by_exception, nullptr);
    bool caught = false;
    try {
        cuMemAlloc_v2(&last, 99);
    } catch (int number) {
        caught = number == 7;
    }
    must(caught, "the exception did not arrive");
    alloc(1001);

    odd_inside(leave_by_jump, nullptr);
    if (!setjmp(back)) {
        cuMemAlloc_v2(&last, 99);
        must(false, "a call came back");
    }
    alloc(1002);

    pthread_t thread;
    odd_inside(leave_by_end_of_thread, nullptr);
    must(pthread_create(&thread, nullptr, allocate, nullptr) == 0, "no thread");
    pthread_join(thread, nullptr);
    alloc(1003);

    odd_inside(stay, nullptr);
    must(pthread_create(&thread, nullptr, allocate, nullptr) == 0, "no thread");
    wait_until_inside();
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    alloc(1004);

    odd_inside(nullptr, stay);
    must(pthread_create(&thread, nullptr, release, (void *)first) == 0, "no thread");
    wait_until_inside();
    for (int i = 0; i < 300; i++)
        alloc(2000 + i);
    printf("%d\n", odd_foreign());
    return 0;
}
