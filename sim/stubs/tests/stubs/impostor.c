/* Stands for NVIDIA's libraries: whoever calls it got the wrong one. */
int cudaGetDeviceCount(int *count) {
    *count = -1;
    return 999;
}

int cublasCreate_v2(void **handle) {
    *handle = 0;
    return 999;
}
