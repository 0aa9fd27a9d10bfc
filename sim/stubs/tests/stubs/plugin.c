/* Is linked with NVIDIA's libraries, by a search path that goes before the environment's: as PyTorch's library is. */
int cudaGetDeviceCount(int *);
int cublasCreate_v2(void **);

/* The two errors, as one number. */
int plugin_run(void) {
    int count = 0;
    void *handle = 0;
    return cudaGetDeviceCount(&count) * 1000 + cublasCreate_v2(&handle);
}
