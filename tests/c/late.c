// A free in a thread that the interpreter does not wait for, but the process does.
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int cuMemFree_v2(uint64_t address);

static atomic_int done;

static void wait_until_done(void) {
    while (!done)
        sched_yield();
}

void wait_for_the_free_at_exit(void) { atexit(wait_until_done); }

void free_late(uint64_t address) {
    printf("free %d\n", cuMemFree_v2(address));
    fflush(stdout);
    done = 1;
}
