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
# (debug, release) says which build, TORCH which version (of CUDA 12 or 13: 2.1.0 or newer), PIP_ARGS what else pip is
# told.
set -eu

torch=${TORCH:-2.11.0}
# What PyTorch imports by itself, without its GPU packages.
others="filelock==4.3.1 fsspec==2026.9.0 jinja2==3.1.6 MarkupSafe==3.0.4 mpmath==1.3.0 networkx==3.6.1 numpy==2.4.6
    sympy==1.14.0 typing-extensions==4.16.0"

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
    # Unquoted: lists of words.
    "$env/venv/bin/python" -m pip install --quiet --no-deps --only-binary :all: ${PIP_ARGS:-} "torch==$torch" $others
    touch "$env/venv/torch-$torch"
fi

build=
[ "$profile" = debug ] || build="--profile $profile"
(cd "$root" && cargo build --quiet $build -p gpumem-sim-driver -p gpumem-sim-runtime -p gpumem-sim-runtime12 \
    -p gpumem-sim-nvml -p gpumem-sim-stubs)

packages=$("$env/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cuda=$(sed -n "s/^cuda[^=]*= '\([0-9]*\)\..*/\1/p" "$packages/torch/version.py")
# A folder in which PyTorch's libraries look for all that they need.
case $cuda in
12) beside=$packages/nvidia/cuda_runtime/lib ;;
13) beside=$packages/nvidia/cu13/lib ;;
*)
    say "PyTorch $torch is made for CUDA ${cuda:-none}: only 12 and 13 are simulated" >&2
    exit 1
    ;;
esac
mkdir -p "$beside"

# Copied beside its place and moved there, since a program may run on the old one.
lay() { # library, place
    cp "$target/$profile/$1" "$2.new"
    mv "$2.new" "$2"
}
lay libgpumem_sim_stubs.so "$beside/libgpumem_sim_stubs.so"
sed 's/#.*//' "$root/sim/stubs/names.txt" | while read -r name file major; do
    case $name in
    '') continue ;;
    # What belongs to the machine, not to PyTorch.
    libcuda.so)
        ln -sf libcuda.so.1 "$env/lib/$name"
        continue
        ;;
    libcuda.so.1 | libnvidia-ml.so.1)
        lay "$file" "$env/lib/$name"
        continue
        ;;
    esac
    [ "$major" = 0 ] || [ "$major" = "$cuda" ] || continue
    if [ "$file" = libgpumem_sim_stubs.so ]; then
        ln -sf "$file" "$beside/$name"
    else
        lay "$file" "$beside/$name"
    fi
done
say "PyTorch $torch on the simulated device: LD_LIBRARY_PATH=$env/lib $env/venv/bin/python"
