// A library whose names begin like the driver's and are not.
int cudnnCreate(void) { return 1; }
int cublasCreate_v2(void) { return 2; }
int cudaMallocLookalike(void) { return 3; }
int curl_easy_init(void) { return 4; }
int cu(void) { return 5; }
// The same name as the driver's, in a library that is not the driver.
int cuMemAlloc_v2(void) { return 6; }
