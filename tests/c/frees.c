// Forks a child that gives back what its parent allocated, and fails to allocate; it says how many threads it has then.
#include "cuda.h"
#include <dirent.h>

static int threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));)
        count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

int main(void) {
    cuda_start();
    int (*unmap)(CUdeviceptr, size_t) = cuda_symbol("cuMemUnmap");
    int (*release)(uint64_t) = cuda_symbol("cuMemRelease");
    CUdeviceptr gone = 0, kept = 0;
    OK(cuMemAlloc_v2(&gone, 1000));
    OK(cuMemAlloc_v2(&kept, 2000));
    pid_t child = fork();
    if (!child) {
        CUdeviceptr none = 0;
        cuMemFree_v2(gone);
        unmap(0x4000, 4096);
        release(0x4242);
        int status = cuMemAlloc_v2(&none, (size_t)1 << 60);
        printf("child: allocation fails %d, threads %d\n", status != 0, threads());
        exit(0);
    }
    int status;
    if (waitpid(child, &status, 0) != child || status)
        return 74;
    printf("parent %d\n", getpid());
    return 0;
}
