/* Functions that bear the names of PyTorch's operators, for the test of what
   the notes say of a copy: each calls the next one in, and the innermost the
   copy. What they return keeps the calls from being jumps. */
#include <stddef.h>
#include <stdint.h>

typedef int copy(void *to, uint64_t from, size_t bytes, uint64_t stream);

/* at::native::_local_scalar_dense_cuda(at::Tensor const&) */
int _ZN2at6native24_local_scalar_dense_cudaERKNS_6TensorE(copy *f, void *to, uint64_t from) {
    return f(to, from, 8, 0) + 1;
}

/* at::_ops::item::call(at::Tensor const&) */
int _ZN2at4_ops4item4callERKNS_6TensorE(copy *f, void *to, uint64_t from) {
    return _ZN2at6native24_local_scalar_dense_cudaERKNS_6TensorE(f, to, from) + 1;
}

/* at::native::unique_cuda_template<float>(at::Tensor const&) */
int _ZN2at6native20unique_cuda_templateIfEEvRKNS_6TensorE(copy *f, void *to, uint64_t from) {
    return _ZN2at4_ops4item4callERKNS_6TensorE(f, to, from) + 1;
}

/* at::native::nonzero_out_cuda(at::Tensor const&), through a function that is
   not exported. */
static __attribute__((noinline)) int within(copy *f, void *to, uint64_t from) {
    return f(to, from, 4, 0) + 1;
}
int _ZN2at6native16nonzero_out_cudaERKNS_6TensorE(copy *f, void *to, uint64_t from) {
    return within(f, to, from) + 1;
}
