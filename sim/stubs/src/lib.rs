//! Simulated math and communication libraries: what PyTorch must find to load
//! and to train where nothing is computed.
//!
//! One library holds the functions of all, each under the versions that programs
//! of CUDA 12 and 13 ask for; a folder of links gives it the names
//! (`libcublas.so.13`, `libcudnn.so.9`, ...; `names.txt` lists them), and the
//! loader opens it once for all of them. So the names exist in that folder alone.
//!
//! A file or folder a library. Its functions are of three kinds: those that would
//! only compute and here succeed at once; those that answer something, written
//! out; and the rest, which answer "not supported" and are named once in the log
//! (`GPUMEM_SIM_LOG=FILE`, or stderr when `GPUMEM_SIM_TRACE` is set). A function
//! that answers through a parameter is never of the first kind: what it left
//! unwritten would be taken for a size.
//!
//! What the libraries take of the device for themselves is modelled where they
//! ask the program for it (workspaces of cuDNN, cuFFT and cuSOLVER:
//! `cudnn/workspace.rs`, `cufft.rs`, `cusolver/mod.rs`) and, on demand, where they allocate it (NCCL's buffers:
//! `nccl/buffers.rs`).
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `GPUMEM_SIM_CUDNN_WORKSPACE` | bytes of workspace of each cuDNN plan | the model's |
//! | `GPUMEM_SIM_CUDNN_VERSION` | the version of cuDNN 9 that is stated, as 92600 | `92600` |
//! | `GPUMEM_SIM_NCCL_CHANNELS` | channels for which a communicator of several ranks takes buffers | `0`: none |

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
mod log;
mod nccl;
mod nvrtc;
mod nvshmem;
mod nvtx;
mod object;
mod open;
