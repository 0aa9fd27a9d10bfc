// Forks many times. Each process that allocates says: its pid, how many allocations it left alive.
//
// Argument "threads": in each child, the first calls come from four threads at once. Argument "beside": while another thread
// allocates and frees; every second child leaves without a call.
#include "cuda.h"
#include <pthread.h>

enum { FORKS = 60, THREADS = 4, BYTES = 64, PAIRS = 500 };

static pthread_barrier_t start;

static void allocate(void) {
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, BYTES));
}

static void say(int allocations) {
    // In one piece: other processes write too.
    char line[64];
    int length = snprintf(line, sizeof line, "%d %d\n", getpid(), allocations);
    if (write(STDOUT_FILENO, line, length) != length)
        exit(75);
}

static void await(pid_t child) {
    int status;
    if (waitpid(child, &status, 0) != child || status)
        exit(74);
}

static void *allocate_at_once(void *unused) {
    pthread_barrier_wait(&start);
    allocate();
    return unused;
}

static void child_with_threads(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        OK(pthread_create(&threads[i], NULL, allocate_at_once, NULL));
    for (int i = 0; i < THREADS; i++)
        OK(pthread_join(threads[i], NULL));
    say(THREADS);
}

static void *allocate_and_free(void *unused) {
    for (int round = 0; round < FORKS; round++) {
        pthread_barrier_wait(&start);
        for (int pair = 0; pair < PAIRS; pair++) {
            CUdeviceptr address = 0;
            OK(cuMemAlloc_v2(&address, BYTES));
            OK(cuMemFree_v2(address));
        }
    }
    return unused;
}

static void child_beside(int number) {
    if (number % 2)
        return;
    allocate();
    allocate();
    say(2);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    int beside = !strcmp(how, "beside");
    pthread_t thread;
    cuda_start();
    allocate();
    pthread_barrier_init(&start, NULL, 2);
    if (beside)
        OK(pthread_create(&thread, NULL, allocate_and_free, NULL));
    for (int number = 0; number < FORKS; number++) {
        if (beside)
            pthread_barrier_wait(&start);
        pid_t child = fork();
        if (!child) {
            if (!strcmp(how, "threads"))
                child_with_threads();
            else
                child_beside(number);
            exit(0);
        }
        await(child);
    }
    if (beside)
        OK(pthread_join(thread, NULL));
    say(1);
    return 0;
}
