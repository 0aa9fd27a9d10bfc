// Allocates, forks, allocates in both; or, with the argument "exec", replaces itself by itself in between.
// Each process says: name, pid, parent.
#include "cuda.h"

static CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr address = 0;
    OK(cuMemAlloc_v2(&address, bytes));
    return address;
}

int main(int count, char **words) {
    cuda_start();
    CUdeviceptr early = allocate(1000);
    allocate(2000);
    if (count > 1) {
        if (!strcmp(words[1], "exec")) {
            execl("/proc/self/exe", words[0], "again", (char *)NULL);
            return 73;
        }
        allocate(50);
        printf("again %d %d\n", getpid(), getppid());
        return 0;
    }
    pid_t child = fork();
    if (!child) {
        allocate(7);
        CUdeviceptr gone = allocate(70);
        OK(cuMemFree_v2(gone));
        // The parent's, of which the child's record knows nothing.
        OK(cuMemFree_v2(early));
        allocate(700);
        printf("child %d %d\n", getpid(), getppid());
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        return 74;
    allocate(3000);
    OK(cuMemFree_v2(early));
    printf("parent %d %d\n", getpid(), getppid());
    return 0;
}
