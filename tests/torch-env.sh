#!/bin/sh
# Makes a Python environment in which PyTorch's own wheel, unchanged, runs on the simulated device: no GPU, and nothing
# of NVIDIA's. The simulated libraries bear NVIDIA's names in this environment alone; nothing of the system is changed.
#
#   tests/torch-env.sh [FOLDER]
#
# FOLDER: else $GPUMEM_TEST_TORCH, else target/torch-env. It then holds
#   venv/    Python with PyTorch, and the simulated runtime and stub libraries where PyTorch looks for NVIDIA's
#   lib/     the simulated driver and management library
#
# Run a program with   LD_LIBRARY_PATH=FOLDER/lib FOLDER/venv/bin/python PROGRAM
#
# The packages are not fetched again when they are there; the libraries are built and laid anew each time. PROFILE
# (debug, release) says which build.
set -eu

torch=2.11.0
# What PyTorch imports by itself, without its GPU packages.
others="filelock==4.3.1 fsspec==2026.9.0 jinja2==3.1.6 MarkupSafe==3.0.4 mpmath==1.3.0 networkx==3.6.1 numpy==2.4.6
    sympy==1.14.0 typing-extensions==4.16.0"
# The names that PyTorch loads, all of one library.
stubs="libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 libcupti.so.13 libcurand.so.10
    libcusolver.so.12 libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvrtc.so.13 libnvshmem_host.so.3"

root=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$root/target}
env=${1:-${GPUMEM_TEST_TORCH:-$target/torch-env}}
profile=${PROFILE:-debug}
mkdir -p "$env/lib"
env=$(cd "$env" && pwd)

say() { echo "torch-env: $*"; }

# The mark is set last, so that a stopped run is done again.
if [ ! -f "$env/venv/torch-$torch" ]; then
    rm -rf "$env/venv"
    python3 -m venv "$env/venv"
    say "fetching PyTorch $torch"
    "$env/venv/bin/python" -m pip install --quiet --no-deps --only-binary :all: "torch==$torch" $others
    touch "$env/venv/torch-$torch"
fi

build=
[ "$profile" = debug ] || build="--profile $profile"
(cd "$root" && cargo build --quiet $build -p gpumem-sim-driver -p gpumem-sim-runtime -p gpumem-sim-nvml -p gpumem-sim-stubs)

# Copied beside its place and moved there, since a program may run on the old one.
lay() { # library, place
    cp "$target/$profile/$1" "$2.new"
    mv "$2.new" "$2"
}
lay libgpumem_sim_driver.so "$env/lib/libcuda.so.1"
lay libgpumem_sim_nvml.so "$env/lib/libnvidia-ml.so.1"
packages=$("$env/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
mkdir -p "$packages/nvidia/cu13/lib"
lay libgpumem_sim_runtime.so "$packages/nvidia/cu13/lib/libcudart.so.13"
lay libgpumem_sim_stubs.so "$packages/nvidia/cu13/lib/libgpumem_sim_stubs.so"
for name in $stubs; do
    ln -sf libgpumem_sim_stubs.so "$packages/nvidia/cu13/lib/$name"
done
say "PyTorch $torch on the simulated device: LD_LIBRARY_PATH=$env/lib $env/venv/bin/python"
