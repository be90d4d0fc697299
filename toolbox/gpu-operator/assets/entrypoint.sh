#!/bin/sh
# Runs the burn for $GPU_BURN_TIME seconds on every GPU this container sees. An image that brings a `gpu_burn` program
# is taken at its word; any other one must have nvcc, and the program is compiled from the source mounted beside this.
set -eu
if command -v gpu_burn >/dev/null 2>&1; then
    exec gpu_burn "$GPU_BURN_TIME"
fi
if ! command -v nvcc >/dev/null 2>&1; then
    echo "this image has neither gpu_burn nor nvcc: choose a CUDA devel image" >&2
    exit 125
fi
nvcc -O3 -std=c++14 -o /tmp/gpu_burn /gpu-burn-src/burn.cu
exec /tmp/gpu_burn "$GPU_BURN_TIME"
