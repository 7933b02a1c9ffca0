#!/usr/bin/env bash
# Fetches what a GPU machine without a network lacks, for its Python, into .carry/wheels: see gpu_run.sh.
#     benchmarks/gpu_pack.sh [3.12]
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .carry/wheels
.venv/bin/pip download --quiet --no-deps --only-binary=:all: --python-version "${1:-3.12}" --dest .carry/wheels \
    onnx onnxscript onnx-ir torchao optimum-quanto pytest pluggy iniconfig
ls .carry/wheels
