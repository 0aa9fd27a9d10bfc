#!/bin/sh
# Fetches what the tests need beyond this repository: NVIDIA's CUDA runtimes 12 and 13 (shared and static) from their
# Python wheels, and NVIDIA's driver library from Debian's package libcuda1. Nothing is installed and nothing of the
# system is changed; what is there already is not fetched again.
#
#   tests/fetch.sh [FOLDER]
#
# FOLDER: else $GPUMEM_TEST_DEPS, else target/test-deps. It then holds
#   cudart12/  cudart13/    the wheels, unpacked
#   libcuda1/               the package, unpacked
#
# Ends with status 1 if something could not be fetched; the rest is there all the same, and the tests that miss
# something say so.
set -u

root=$(cd "$(dirname "$0")/.." && pwd) || exit 1
deps=${1:-${GPUMEM_TEST_DEPS:-${CARGO_TARGET_DIR:-$root/target}/test-deps}}
mkdir -p "$deps" || exit 1
deps=$(cd "$deps" && pwd) || exit 1
failed=0

say() { echo "fetch: $*"; }

# A part is unpacked beside its place and moved there whole, so that a stopped run leaves no half of it.
wheel() { # place, package
    if [ -d "$deps/$1" ]; then
        say "$1 is there"
        return
    fi
    part=$(mktemp -d "$deps/.part.XXXXXX") || exit 1
    if python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$part" "$2" >"$part/log" 2>&1 &&
        python3 -m zipfile -e "$part"/*.whl "$part/unpacked" >>"$part/log" 2>&1; then
        mv "$part/unpacked" "$deps/$1"
        say "$1 fetched: $(basename "$part"/*.whl)"
    else
        say "$1 could not be fetched (python3 -m pip download $2):"
        tail -n 5 "$part/log"
        failed=1
    fi
    rm -rf "$part"
}

# The system's own Debian sources, with the component non-free (and, for the main archive, nothing else) added.
debian_sources() {
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -f "$file" ] && sed -n -E 's/^(deb .*[[:space:]]main)([[:space:]].*)?$/\1\2 non-free/p' "$file"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -f "$file" ] || continue
        # One line for each entry: its address and its suites. Only the main archive has libcuda1.
        awk '
            function flush() {
                if (uris != "" && components ~ /(^| )main( |$)/) {
                    n = split(suites, suite, " ")
                    for (i = 1; i <= n; i++) {
                        signed = key == "" ? "" : "[signed-by=" key "] "
                        print "deb " signed uris " " suite[i] " main non-free"
                    }
                }
                uris = suites = components = key = ""
            }
            /^[[:space:]]*$/ { flush() }
            /^URIs:/ { uris = $2 }
            /^Suites:/ { $1 = ""; suites = $0 }
            /^Components:/ { $1 = ""; components = $0 }
            /^Signed-By:/ { key = $2 }
            END { flush() }
        ' "$file"
    done
}

driver() {
    if [ -d "$deps/libcuda1" ]; then
        say "libcuda1 is there"
        return
    fi
    part=$(mktemp -d "$deps/.part.XXXXXX") || exit 1
    mkdir -p "$part/lists/partial" "$part/parts"
    debian_sources | grep -v -e '-security' -e '-updates' >"$part/sources.list"
    if [ ! -s "$part/sources.list" ]; then
        say "libcuda1 could not be fetched: this system has no source of Debian packages"
        rm -rf "$part"
        failed=1
        return
    fi
    private() {
        apt-get -qq \
            -o Dir::Etc::sourcelist="$part/sources.list" \
            -o Dir::Etc::sourceparts="$part/parts" \
            -o Dir::State::lists="$part/lists" \
            -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
            -o APT::Update::Post-Invoke-Success::= -o APT::Update::Post-Invoke::= \
            -o APT::Sandbox::User= \
            -o Acquire::Languages=none "$@"
    }
    if private update >"$part/log" 2>&1 &&
        (cd "$part" && private download libcuda1 >>log 2>&1) &&
        dpkg-deb -x "$part"/libcuda1_*.deb "$part/unpacked"; then
        mv "$part/unpacked" "$deps/libcuda1"
        say "libcuda1 fetched: $(basename "$part"/libcuda1_*.deb)"
    else
        say "libcuda1 could not be fetched (apt-get download libcuda1, component non-free):"
        tail -n 5 "$part/log"
        failed=1
    fi
    rm -rf "$part"
}

wheel cudart12 nvidia-cuda-runtime-cu12
wheel cudart13 nvidia-cuda-runtime
driver
say "all in $deps"
exit $failed
