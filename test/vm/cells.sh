#!/usr/bin/env bash
# What the kernel this runs on makes of both back ends: the cases of the bank that need a kernel, and the programs that do.
#   test/vm/cells.sh --bin DIR [-j N] [--patience N] [--filter TEXT] [--every N] [BACK END...]    nftables and ipvs unless told
# --every N: a sample, each Nth case of the bank, and of the programs what is quick
# Prints what was said, and for each back end a line that matrix.sh reads:
#   cell BACK-END: N passed, N failed, N skipped, N s
# A back end that cannot be tried says `SKIP BACK-END: why` and gets a line as well. Exit code 0 only if nothing failed.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bin=build/dev/bin at_once=() patience=1 filter='' every=1 failed_any=0
while [ $# -gt 0 ]; do
  case $1 in
    --bin) bin=$2 && shift 2 ;;
    -j) at_once=(-j "$2") && shift 2 ;;
    --patience) patience=$2 && shift 2 ;;
    --filter) filter=$2 && shift 2 ;;
    --every) every=$2 && shift 2 ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || set -- nftables ipvs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

add() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

cases() { # cases KINDS: those of the bank
  "$bin/conformance" test/conformance --kinds "$1" --mode "$mode" --patience "$patience" --every "$every" "${at_once[@]}" \
    ${filter:+--filter "$filter"} 2>&1 | tee "$work/out"
  local p f s
  # A run without any case of its kinds says so as well.
  if read -r p f s < <(tail -n 1 "$work/out" |
    sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p') && [ -n "${s:-}" ]; then
    # "FAIL kind: why (N cases not run)" is no case, but no success either.
    [ "$f" -gt 0 ] || f=$(grep -c '^FAIL' "$work/out")
    add "$p" "$f" "$s"
  else
    echo "FAIL conformance --kinds $1 --mode $mode died"
    add 0 1 0
  fi
}

program() { # program NAME TESTS: those tests of a Catch2 program, if there are any
  [ -x "$bin/$1" ] && "$bin/$1" --list-tests "$2" 2>/dev/null | grep -qE '^[1-9][0-9]* matching' || return 0
  local code=0
  "$bin/$1" "$2" >"$work/out" 2>&1 || code=$?
  local line
  line=$(grep -E '^(All tests passed|test cases:)' "$work/out" | tail -n 1)
  local p=0 f=0 s=0
  case $line in
    All*) p=$(sed -nE 's/.* in ([0-9]+) test cases?\).*/\1/p' <<<"$line") ;;
    *)
      p=$(grep -oE '[0-9]+ passed' <<<"$line" | cut -d' ' -f1)
      f=$(grep -oE '[0-9]+ failed' <<<"$line" | cut -d' ' -f1)
      s=$(grep -oE '[0-9]+ skipped' <<<"$line" | cut -d' ' -f1)
      ;;
  esac
  if [ $code -ne 0 ] && [ "${f:-0}" -eq 0 ]; then
    if [ $code -eq 4 ] && [ "${p:-0}" -eq 0 ]; then # every test was skipped
      grep -m 1 -B 1 -A 3 'SKIPPED' "$work/out"
    else
      echo "FAIL $1 ended with $code"
      f=1
    fi
  fi
  [ "${f:-0}" -eq 0 ] || tail -n 60 "$work/out"
  echo "$1 $2: ${p:-0} passed, ${f:-0} failed, ${s:-0} skipped"
  add "${p:-0}" "${f:-0}" "${s:-0}"
}

why_not() { # why_not BACK-END: nothing when it can be tried
  [ "$(id -u)" -eq 0 ] || {
    echo "needs root"
    return
  }
  local said
  printf 'apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: %s\n' "$1" >"$work/config.yaml"
  if ! said=$("$bin/kube-shunt" --check-config --config "$work/config.yaml" 2>&1); then
    echo "kube-shunt does not take this mode: $(tail -n 1 <<<"$said")"
  elif [ "$1" = ipvs ] && ! has_ipvs; then
    echo "no IPVS in this kernel ($(uname -r)): ip_vs can neither be loaded nor is it there"
  fi
}

has_ipvs() { # in a namespace of its own, as the tests do
  modprobe -q ip_vs 2>/dev/null
  unshare -n test -e /proc/net/ip_vs
}

for mode in "$@"; do
  passed=0 failed=0 skipped=0 begin=$SECONDS
  why=$(why_not "$mode")
  if [ -n "$why" ]; then
    echo "SKIP $mode: $why"
    skipped=1
  elif [ "$mode" = ipvs ]; then
    cases packet-flow,conntrack,virtual-servers
    if [ -z "$filter" ] && [ "$every" -eq 1 ]; then
      program test_ipvs_kernel '*'
      program test_withdrawal_kernel '*'
      program test_daemon '[ipvs]'
    elif [ -z "$filter" ]; then
      program test_daemon '[ipvs][quick]'
    fi
  else
    cases packet-flow,conntrack
    if [ -z "$filter" ] && [ "$every" -eq 1 ]; then
      program test_kernel '*'
    elif [ -z "$filter" ]; then
      program test_kernel '[quick]'
    fi
  fi
  echo "cell $mode: $passed passed, $failed failed, $skipped skipped, $((SECONDS - begin)) s"
  [ "$failed" -eq 0 ] || failed_any=1
done
exit $failed_any
