//! Simulated math and communication libraries: what PyTorch must find to load
//! and to train where nothing is computed.
//!
//! One library holds the functions of all, each under the version that programs
//! ask for; a folder of links gives it the names (`libcublas.so.13`,
//! `libcudnn.so.9`, ...), and the loader opens it once for all of them. So the
//! names exist in that folder alone.
//!
//! A file a library. Its functions are of three kinds: those that would only
//! compute and here succeed at once; those that answer something, written out;
//! and the rest, which answer "not supported" and are named once on stderr when
//! `GPUMEM_SIM_TRACE` is set. A function that answers through a parameter is
//! never of the first kind: what it left unwritten would be taken for a size.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `GPUMEM_SIM_CUDNN_WORKSPACE` | bytes of workspace of each cuDNN plan | `1048576` |

// The functions bear the libraries' names.
#![allow(non_snake_case)]

mod cublas;
mod cublas_lt;
mod cudnn;
mod cufft;
mod cufile;
mod cupti;
mod curand;
mod cusolver;
mod cusparse;
mod cusparse_lt;
mod driver;
mod export;
mod nccl;
mod nvrtc;
mod nvshmem;
mod object;
