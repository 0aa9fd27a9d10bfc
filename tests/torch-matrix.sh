#!/bin/sh
# Runs real PyTorch of many versions on the simulated device, and holds what each says of its memory to the driver's
# ledger. Exits with 1 if any version fails.
#
#   tests/torch-matrix.sh [VERSION...]
#
# Without versions: the oldest that is simulated, the newest, and some of CUDA 12 and 13 between them. Each gets an
# environment under target/torch-matrix (0.5 to 1.5 GB), which goes when it has run, unless KEEP is set. PROFILE
# (debug, release) says which build of the libraries.
#
# 2.0 and older are made for CUDA 11, whose runtime is not simulated: 2.1.0 is the oldest.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
folder=${CARGO_TARGET_DIR:-$root/target}/torch-matrix
program=$root/sim/runtime/tests/torch/matrix.py
mkdir -p "$folder"
[ $# -gt 0 ] || set -- 2.1.0 2.3.1 2.4.1 2.6.0 2.8.0 2.9.1 2.11.0 2.13.0 2.15.0

# What a run said and what the driver's ledger held, as a row's cells. Fails if they differ.
cells() { # said, truth
    python3 - "$1" "$2" <<'END'
import json, sys

said = json.loads(open(sys.argv[1]).read().splitlines()[-1])
truth = json.load(open(sys.argv[2]))["devices"][0]
same = said["reserved"] == said["segments"] == truth["charged_bytes"]
print(said["cuda"], said["cudnn"], said["peak_allocated"], said["reserved"], truth["charged_bytes"], sep=" | ", end="")
sys.exit(not same)
END
}

# Runs the program in an environment with an allocator's settings; a row's cells.
run() { # environment, settings
    rm -f "$1/said" "$1/truth"
    # Both names of the variable: it changed with 2.9.
    if ! PYTORCH_ALLOC_CONF=$2 PYTORCH_CUDA_ALLOC_CONF=$2 LD_LIBRARY_PATH=$1/lib GPUMEM_SIM_TRUTH=$1/truth \
        "$1/venv/bin/python" "$program" >"$1/said" 2>"$1/errors"; then
        printf -- '- | - | - | - | - | fails: %s' "$(grep . "$1/errors" | tail -1)"
        return 1
    fi
    if cells "$1/said" "$1/truth"; then
        printf ' | holds'
    else
        printf ' | differs'
        return 1
    fi
}

failed=0
echo "| PyTorch | segments | CUDA | cuDNN | peak allocated | reserved | ledger | |"
echo "|---|---|---|---|---|---|---|---|"
for version in "$@"; do
    env=$folder/$version
    if TORCH=$version PIP_ARGS=--no-cache-dir "$root/tests/torch-env.sh" "$env" >"$folder/$version.log" 2>&1; then
        for segments in default expandable; do
            settings=expandable_segments:False
            [ "$segments" = default ] || settings=expandable_segments:True
            row=$(run "$env" "$settings") || failed=1
            echo "| $version | $segments | $row |"
        done
    else
        failed=1
        echo "| $version | - | - | - | - | - | - | no environment: $(grep . "$folder/$version.log" | tail -1) |"
    fi
    [ -n "${KEEP:-}" ] || rm -rf "$env"
    rm -f "$folder/$version.log"
done
exit $failed
