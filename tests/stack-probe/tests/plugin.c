// A library with one function, whose frame has room for ROOM bytes.
#include <string.h>

__attribute__((noinline)) long plug(long (*inner)(void)) {
    char room[ROOM];
    memset(room, 1, sizeof room);
    __asm__ volatile("" ::"r"(room) : "memory");
    long result = inner();
    __asm__ volatile("" ::"r"(room) : "memory");
    return result + room[0];
}
