// Compares the probe's native frames with libgcc's _Unwind_Backtrace.
//
// Usage: unwinders PROBE PLUGIN_A PLUGIN_B. Each case prints "name: N equal, M different".
#define _GNU_SOURCE
#include <alloca.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unwind.h>

#define MOST 4096

typedef size_t (*capture_t)(int, char *, size_t);
static capture_t capture;
static unsigned (*capture_id)(int);
static void (*bump_epoch)(void);
static void (*counters)(unsigned long *);
static int equal, different;

struct stack {
    size_t length;
    size_t left_out;
    unsigned long frames[MOST];
};

static _Unwind_Reason_Code add(struct _Unwind_Context *context, void *argument) {
    struct stack *stack = argument;
    unsigned long ip = _Unwind_GetIP(context);
    // libgcc ends with a frame at 0.
    if (ip != 0 && stack->length < MOST) stack->frames[stack->length++] = ip;
    return _URC_NO_REASON;
}

static void read_stack(const char *text, struct stack *stack) {
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        unsigned long start, address;
        if (line[0] == 'E') {
            stack->left_out = strtoul(line + 2, NULL, 10);
        } else if (line[0] == 'N' && sscanf(line, "N\t%*[^\t]\t%lx\t%lx", &start, &address) == 2 && stack->length < MOST) {
            // All objects here are position independent: what the loader adds is where they start.
            stack->frames[stack->length++] = start + address;
        }
    }
}

static int same(const struct stack *ours, const struct stack *theirs) {
    // The innermost frame is `compare` at two different calls.
    if (ours->length < 3 || ours->length + ours->left_out != theirs->length) return 0;
    size_t gap = 192;
    for (size_t i = 1; i < ours->length; i++) {
        size_t other = ours->left_out != 0 && i >= gap ? i + ours->left_out : i;
        if (ours->frames[i] != theirs->frames[other]) return 0;
    }
    return 1;
}

__attribute__((noinline)) long compare(void) {
    static __thread char text[1 << 18];
    static __thread struct stack ours, theirs;
    ours.length = ours.left_out = theirs.length = 0;
    size_t size = capture(0, text, sizeof text - 1);
    text[size] = 0;
    read_stack(text, &ours);
    _Unwind_Backtrace(add, &theirs);
    if (same(&ours, &theirs)) {
        __atomic_fetch_add(&equal, 1, __ATOMIC_RELAXED);
    } else {
        __atomic_fetch_add(&different, 1, __ATOMIC_RELAXED);
        fprintf(stderr, "%zu frames (%zu left out) against %zu\n", ours.length, ours.left_out, theirs.length);
    }
    return 1;
}

static void report(const char *name) {
    printf("%s: %d equal, %d different\n", name, equal, different);
    equal = different = 0;
}

// A variable-sized array beside a local with a large alignment: GCC keeps the frame's address in memory ("DRAP").
__attribute__((noinline)) static long realigned(long (*inner)(void), int size) {
    char *variable = alloca(size);
    long aligned[8] __attribute__((aligned(64)));
    memset(variable, 1, size);
    aligned[0] = size;
    __asm__ volatile("" ::"r"(variable), "r"(aligned) : "memory");
    long result = inner();
    __asm__ volatile("" ::"r"(aligned) : "memory");
    return result + aligned[0] - size;
}

__attribute__((noinline)) static long twice_realigned(void) { return realigned(compare, 333) + 1; }

__attribute__((noinline)) static long variable(int size) {
    char *bytes = alloca(size);
    memset(bytes, 1, size);
    __asm__ volatile("" ::"r"(bytes) : "memory");
    return compare() + bytes[0];
}

__attribute__((noinline)) static long deep(int depth) {
    if (depth == 0) return compare();
    long result = deep(depth - 1);
    __asm__ volatile("" : "+r"(result));
    return result + 1;
}

static int by_value(const void *a, const void *b) {
    compare();
    return *(const int *)a - *(const int *)b;
}

static void on_signal(int number) {
    (void)number;
    compare();
}

__attribute__((noinline)) static int interrupted(void) { return raise(SIGUSR1) + 1; }

static void *thread(void *argument) {
    for (int i = 0; i < 50; i++) {
        deep(i % 7);
        realigned(compare, 64 * (i % 5));
        variable(100 + i);
    }
    return argument;
}

static ucontext_t caller, coroutine;
static unsigned foreign_id = 99;
static void on_other_stack(void) { foreign_id = capture_id(0); }

// The two plugins have the same layout and unlike frames.
static void reopen(const char *const *plugins, int bump) {
    void *last = NULL;
    int same_address = 0;
    for (int i = 0; i < 40; i++) {
        void *handle = dlopen(plugins[i % 2], RTLD_NOW);
        if (handle == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            exit(2);
        }
        long (*plug)(long (*)(void)) = (long (*)(long (*)(void)))dlsym(handle, "plug");
        same_address += (void *)plug == last;
        last = (void *)plug;
        plug(compare);
        dlclose(handle);
        if (bump) bump_epoch();
    }
    printf("same address: %d\n", same_address);
}

// Libraries come and go while other threads capture.
static int stop;
static void *restless(void *argument) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        capture_id(0);
        realigned(compare, 200);
    }
    return argument;
}

static void storm(const char *const *plugins) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, restless, NULL);
    for (int i = 0; i < 500; i++) {
        void *handle = dlopen(plugins[i % 2], RTLD_NOW);
        long (*plug)(long (*)(void)) = (long (*)(long (*)(void)))dlsym(handle, "plug");
        plug(compare);
        dlclose(handle);
        bump_epoch();
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
}

int main(int count, char **arguments) {
    if (count != 4) return 2;
    void *probe = dlopen(arguments[1], RTLD_NOW);
    if (probe == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    capture = (capture_t)dlsym(probe, "probe_capture");
    capture_id = (unsigned (*)(int))dlsym(probe, "probe_id");
    bump_epoch = (void (*)(void))dlsym(probe, "probe_bump_epoch");
    counters = (void (*)(unsigned long *))dlsym(probe, "probe_counters");

    compare();
    report("plain");
    for (int size = 1; size < 400; size += 7) {
        realigned(compare, size);
        realigned(twice_realigned, size);
    }
    report("realigned");
    for (int size = 1; size < 400; size += 7) variable(size);
    report("variable");
    for (int depth = 0; depth < 150; depth += 3) deep(depth);
    report("deep");
    deep(240), deep(1000), deep(3000);
    report("too deep");
    int values[8] = {5, 3, 8, 1, 9, 2, 7, 4};
    qsort(values, 8, sizeof *values, by_value);
    report("callback");
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 3; i++) interrupted();
    report("signal");
    pthread_t threads[3];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, thread, NULL);
        for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    }
    report("threads");

    size_t size = 1 << 18;
    getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = malloc(size);
    coroutine.uc_stack.ss_size = size;
    coroutine.uc_link = &caller;
    makecontext(&coroutine, on_other_stack, 0);
    swapcontext(&caller, &coroutine);
    unsigned long counted[5];
    counters(counted);
    printf("other stack: id %u, counted %lu\n", foreign_id, counted[3]);
    compare();
    report("back on the own stack");

    const char *const *plugins = (const char *const *)arguments + 2;
    reopen(plugins, 1);
    report("reopened, epoch bumped");
    storm(plugins);
    report("storm");
    return 0;
}
