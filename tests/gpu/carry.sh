#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Downloads, on a machine with internet, the wheels that gpu-check needs on one without, and packs them into folders:
#
#     tests/gpu/carry.sh [-p 3.12] [-o build/carry] [-m 48] [base] [tensorrt] [cudnn] [ort] [triton]
#
# build/carry/part-1, part-2, ... hold at most -m MiB each, so that they can travel one by one; larger wheels are split
# into <wheel>.part-00, ... On the other machine: put all of them into one folder, then environment.py --wheels FOLDER.
# Versions are those of requirements.lock where it has them. Without groups: base. docs/internals/gpu-check.md says which.
set -eu

here=$(cd "$(dirname "$0")/../.." && pwd)
python=3.12 out=$here/build/carry megabytes=48
while getopts p:o:m: option; do
    case $option in
    p) python=$OPTARG ;;
    o) out=$OPTARG ;;
    m) megabytes=$OPTARG ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- base

names_of() {
    case $1 in
    base) echo cuda-bindings cuda-pathfinder onnx-ir safetensors ml-dtypes click cryptography cffi pycparser \
        pytest pluggy iniconfig pygments packaging pytest-xdist execnet hypothesis sortedcontainers ;;
    tensorrt) echo tensorrt-rtx-cu13-bindings tensorrt-rtx-cu13-libs ;;
    cudnn) echo nvidia-cudnn-cu13 nvidia-cuda-nvrtc ;;
    ort) echo onnxruntime-gpu ;;                       # shadows onnxruntime; has the CUDA provider
    triton) echo triton ;;                             # the version that bundles are built with
    *) echo "carry.sh: no group is called $1: base tensorrt cudnn ort triton" >&2 && return 2 ;;
    esac
}

pinned() { # name -> name==version of requirements.lock, or name
    grep -E "^$1==" "$here/requirements.lock" | head -n 1 | cut -d ' ' -f 1 | grep . || echo "$1"
}

wheels=$out/wheels
rm -rf "$out"
mkdir -p "$wheels"
set -- $(for group in "$@"; do names_of "$group" || exit 2; done)
platforms=
for glibc in 2_39 2_35 2_34 2_31 2_28 2_27 2_24 2_17 2_5; do platforms="$platforms --platform manylinux_${glibc}_x86_64"; done
for name in "$@"; do
    # shellcheck disable=SC2086 # a list of options
    python3 -m pip download --quiet --no-deps --only-binary=:all: --python-version "$python" --implementation cp \
        $platforms --platform manylinux2014_x86_64 --platform manylinux1_x86_64 -d "$wheels" "$(pinned "$name")"
done

limit=$((megabytes * 1024 * 1024)) number=1 used=0
place() { # moves a file into the current part, or into the next one
    bytes=$(wc -c <"$1")
    if [ "$used" -gt 0 ] && [ $((used + bytes)) -gt "$limit" ]; then number=$((number + 1)) used=0; fi
    mkdir -p "$out/part-$number"
    mv "$1" "$out/part-$number/"
    used=$((used + bytes))
}
for wheel in "$wheels"/*.whl; do
    if [ "$(wc -c <"$wheel")" -gt "$limit" ]; then
        split -b "$limit" -d -a 2 "$wheel" "$wheel.part-"
        rm "$wheel"
    fi
done
for file in "$wheels"/*; do place "$file"; done
rmdir "$wheels"
du -sm "$out"/part-*
