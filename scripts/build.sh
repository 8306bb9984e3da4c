#!/usr/bin/env bash
# Builds kube-shunt into build/<kind>/, programs in build/<kind>/bin/.
#   scripts/build.sh [dev|release|asan|tsan|fuzz] [target...]
# asan carries UBSan. SHUNT_UNITY=ON compiles dev in large units, as all others are: a third of the time from nothing, much more
# after an edit. fuzz needs clang 14 and builds the fuzzers only.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-dev}
shift || true
dir=build/$kind
mkdir -p build
flags=()
targets=("$@")
case $kind in
  dev) flags+=(-DCMAKE_BUILD_TYPE=Dev "-DSHUNT_UNITY=${SHUNT_UNITY:-OFF}") ;;
  release) flags+=(-DCMAKE_BUILD_TYPE=Release -DSHUNT_UNITY=ON) ;;
  asan) flags+=(-DCMAKE_BUILD_TYPE=Dev "-DSHUNT_SANITIZE=address,undefined" -DSHUNT_UNITY=ON) ;;
  tsan) flags+=(-DCMAKE_BUILD_TYPE=Dev -DSHUNT_SANITIZE=thread -DSHUNT_UNITY=ON) ;;
  fuzz)
    flags+=(-DCMAKE_BUILD_TYPE=Dev -DSHUNT_FUZZ=ON -DSHUNT_UNITY=ON -DCMAKE_CXX_COMPILER=clang++-14)
    [ ${#targets[@]} -gt 0 ] || targets=(fuzzers)
    ;;
  *)
    echo "usage: scripts/build.sh [dev|release|asan|tsan|fuzz] [target...]" >&2
    exit 2
    ;;
esac
cmake -S . -B "$dir" -G Ninja "${flags[@]}" >"$dir.configure.log" 2>&1 || {
  cat "$dir.configure.log" >&2
  exit 1
}
if [ ${#targets[@]} -gt 0 ]; then
  cmake --build "$dir" --target "${targets[@]}"
else
  cmake --build "$dir"
fi
