#!/usr/bin/env bash
# Kernels times back ends: what of the tests depends on the kernel, under Debian's kernels in virtual machines and under this
# machine's own, and a table of it.
#   test/vm/matrix.sh [--bin DIR] [--out DIR] [--kernels host,bookworm,backports] [--filter TEXT] [--every N] [BACK END...]
# --every N: a sample, which is what CI has time for (cells.sh)
# Machines run at the same time, with one processor each, after what runs on the host (name it first). What each said stays in DIR/KERNEL.log. Exit code 0 only if nothing
# failed; what cannot run says SKIP and why.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bin=build/dev/bin out='' kernels=host,bookworm,backports filter=() sample=1 limit=4000
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$2 && shift 2 ;;
    --out) out=$2 && shift 2 ;;
    --kernels) kernels=$2 && shift 2 ;;
    --filter) filter+=(--filter "$2") && shift 2 ;;
    --every) filter+=(--every "$2") && sample=$2 && shift 2 ;;
    --timeout) limit=$2 && shift 2 ;;
    -*)
      echo "matrix.sh: no option $1" >&2
      exit 2
      ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- nftables ipvs
back_ends=("$@")
if [ -z "$out" ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out"

# Programs without symbols, so that little has to come through the machine's view of our files.
lean=build/vm/bin
mkdir -p "$lean"
for program in conformance kube-shunt test-apiserver test_kernel test_ipvs_kernel test_withdrawal_kernel test_daemon; do
  rm -f "$lean/$program"
  [ ! -x "$bin/$program" ] || strip -o "$lean/$program" "$bin/$program"
done

# One after the other: a machine is much slower, and patient, this one is not.
host() {
  { echo "kernel: $(uname -r)" && test/vm/cells.sh --bin "$bin" "${filter[@]}" "${back_ends[@]}"; } >"$out/host.log" 2>&1
}
IFS=, read -ra names <<<"$kernels"
declare -A pids=()
for name in "${names[@]}"; do
  if [ "$name" = host ]; then
    host
    continue
  fi
  if ! test/vm/run.sh --kernel "$name" --get >"$out/$name.log" 2>&1; then
    continue
  fi
  # shellcheck disable=SC2016  # for the shell in there
  test/vm/run.sh --kernel "$name" --cpus 1 --timeout "$limit" -- \
    bash -c 'echo "kernel: $(uname -r)"; exec "$@"' bash \
    test/vm/cells.sh --bin "$lean" -j 3 --patience 6 "${filter[@]}" "${back_ends[@]}" >"$out/$name.log" 2>&1 &
  pids[$name]=$!
done
for name in "${!pids[@]}"; do
  wait "${pids[$name]}"
done

failed=0
table="$out/table"
: >"$table"
for name in "${names[@]}"; do
  log=$out/$name.log
  version=$(sed -n 's/^kernel: //p' "$log" | head -n 1)
  for back_end in "${back_ends[@]}"; do
    cell=$(sed -nE "s/^cell $back_end: ([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped, ([0-9]+) s\r?$/\1 \2 \3 \4/p" "$log")
    why=''
    if [ -n "$cell" ]; then
      why=$(sed -n "s/^SKIP $back_end: //p" "$log" | head -n 1)
      [ "$(cut -d' ' -f2 <<<"$cell")" -eq 0 ] || failed=1
    elif grep -q '^vm: ' "$log" && [ -z "$version" ]; then
      cell='0 0 1 0'
      why="no virtual machine: $(grep '^vm: ' "$log" | tail -n 1 | cut -c5-)"
    else
      cell='0 1 0 0'
      why="did not get that far: $(tail -n 1 "$log" | cut -c1-100)"
      failed=1
    fi
    # shellcheck disable=SC2086  # four numbers
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name ${version:+($version)}" "$back_end" $cell "$why" >>"$table"
  done
done
for name in "${names[@]}"; do
  if grep -qE '^FAIL|[1-9][0-9]* failed' "$out/$name.log"; then
    echo "$name:"
    grep -E '^FAIL' "$out/$name.log" | head -n 40
  fi
done
[ "$sample" -eq 1 ] || echo "a sample: each ${sample}th case"
printf '%-32s %-9s %7s %7s %8s %8s\n' kernel 'back end' passed failed skipped seconds
awk -F'\t' '{ printf "%-32s %-9s %7d %7d %8d %8d\n", $1, $2, $3, $4, $5, $6 } $7 != "" { print "  SKIP or FAIL: " $7 }' "$table"
exit $failed
