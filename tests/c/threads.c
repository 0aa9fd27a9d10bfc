// Threads, as many as the first argument says, each of which allocates twice and frees once. With the second argument "at
// once" all are alive until the last is done, with "in turn" each is gone before the next begins.
#include "cuda.h"
#include <pthread.h>

static pthread_barrier_t all_done;
static void *context;
static int at_once;

static void *run(void *unused) {
    CUdeviceptr kept = 0, gone = 0;
    OK(cuCtxSetCurrent(context));
    OK(cuMemAlloc_v2(&kept, 64));
    OK(cuMemAlloc_v2(&gone, 128));
    OK(cuMemFree_v2(gone));
    if (at_once)
        pthread_barrier_wait(&all_done);
    return unused;
}

int main(int count, char **words) {
    if (count < 3)
        return 74;
    int threads = atoi(words[1]);
    at_once = !strcmp(words[2], "at once");
    cuda_start();
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, 256));
    pthread_t *started = calloc(threads, sizeof *started);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 256 << 10);
    pthread_barrier_init(&all_done, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        OK(pthread_create(&started[i], &small, run, NULL));
        if (!at_once)
            OK(pthread_join(started[i], NULL));
    }
    if (at_once) {
        pthread_barrier_wait(&all_done);
        for (int i = 0; i < threads; i++)
            OK(pthread_join(started[i], NULL));
    }
    printf("%d\n", getpid());
    return 0;
}
