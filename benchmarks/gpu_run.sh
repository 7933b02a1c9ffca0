#!/usr/bin/env bash
# What is run on a GPU machine, one part for each call; nothing is installed there. Results go to $OUT.
#     benchmarks/gpu_run.sh tests                   all of tests/gpu: about 8 minutes
#     benchmarks/gpu_run.sh overhead [WORKLOADS]    what watching adds to a step: 1 to 3 minutes for each workload
#     benchmarks/gpu_run.sh deploy MODELS [SECONDS] ways to deploy them, with energy: ends within SECONDS
set -euo pipefail
cd "$(dirname "$0")/.."
OUT=${OUT:-.carry/out}
SITE=${TMPDIR:-/tmp}/bitwatt-site
mkdir -p "$OUT" "$SITE"
for wheel in .carry/wheels/*.whl; do
    [ -e "$wheel" ] && python3 -m zipfile -e "$wheel" "$SITE"
done

export PYTHONPATH="$PWD/src:$SITE${PYTHONPATH:+:$PYTHONPATH}"
case "${1:-}" in
tests)
    python3 -m pytest -p no:cacheprovider -m gpu -q --durations=15 tests/gpu 2>&1 | tee "$OUT/tests.txt"
    ;;
overhead)
    python3 benchmarks/overhead.py --device cuda --workloads "${2:-mlp,resnet,transformer,gpt2}" --cold 500 \
        --tools "off (control);bitwatt" --json "$OUT/overhead.json"
    ;;
deploy)
    python3 benchmarks/deploy_h200.py --models "${2:?which models}" --batches 1,32 --processes 2 \
        --json "$OUT/deploy.json" --budget-seconds "${3:-540}"
    ;;
*)
    sed -n 's/^#  *//p' "$0" | head -4
    exit 2
    ;;
esac
