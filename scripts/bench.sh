#!/usr/bin/env bash
# Builds and runs the benchmark: one table on stdout, ratios against floors of the same run. Needs root.
#   scripts/bench.sh [--sizes 1k,10k,100k] [--quick] [--flips N] [--parts NAME,...]
#                    [--json FILE] [--svg FILE] [--kube-proxy PATH] [--strict] [--build dev]
# Targets that are missed are printed as missed; only --strict makes that an error. test/bench/README.md says more.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=release
arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --build)
      kind=${2:?--build takes release or dev}
      shift
      ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
scripts/build.sh "$kind" kube-shunt test-apiserver bench_floor bench_suite >&2
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
if ! git diff --quiet HEAD -- 2>/dev/null; then
  commit+=-changed
fi
exec "build/$kind/bin/bench_suite" --commit "$commit" "${arguments[@]}"
