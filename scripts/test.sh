#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Ends with a line of counts; exit code 0 only if nothing failed.
#   scripts/test.sh            everything, as CI does: dev, asan (with UBSan), tsan, linters, a minute of fuzzing
#   scripts/test.sh --quick    the dev build only, no linters, no fuzzing
# Tests that need root (network namespaces, nftables) say SKIP without it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
mode=${1:-}
if [ "$mode" = --quick ]; then
  scripts/install.sh || exit 1
else
  scripts/install.sh --linters || exit 1
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
failed_steps=()
passed=0 failed=0 skipped=0
started=$SECONDS

step() { # step NAME COMMAND...: a step that counts as one test
  local name=$1
  shift
  echo
  echo "== $name"
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    failed_steps+=("$name")
  fi
}

catch2() { # catch2 KIND PROGRAM [ARGUMENT...]: counts what the program reports
  local kind=$1 program=$2
  shift 2
  local report="$results/$kind-$program.xml"
  echo
  echo "== $kind $program"
  local begin=$SECONDS
  if ! "build/$kind/bin/$program" -r console::out=- -r "junit::out=$report" "$@" >"$results/log" 2>&1; then
    tail -n 120 "$results/log"
  fi
  # A program that died leaves no report, or half of one.
  local counts
  if counts=$(python3 - "$report" "$results/skips" "$kind $program" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
report, skips, name = sys.argv[1:]
tests = fails = skipped = 0
with open(skips, "a") as out:
    for case in tree.parse(report).getroot().iter("testcase"):
        tests += 1
        if case.find("failure") is not None or case.find("error") is not None:
            fails += 1
        elif case.find("skipped") is not None:
            skipped += 1
            why = " ".join((case.find("skipped").text or case.find("skipped").get("message") or "").split())
            out.write(f"SKIP {name}: {case.get('name')}: {why}\n")
print(tests - fails - skipped, fails, skipped)
PYTHON
  ); then
    local p f s
    read -r p f s <<<"$counts"
    echo "$p passed, $f failed, $s skipped in $((SECONDS - begin)) s"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$f" -eq 0 ] || failed_steps+=("$kind $program")
  else
    tail -n 120 "$results/log"
    echo "$program died"
    failed=$((failed + 1))
    failed_steps+=("$kind $program died")
  fi
}

conformance() { # conformance NAME ARGUMENT...: cases of the bank, with the runner of the dev build
  local name="conformance ($1)"
  shift
  echo
  echo "== $name"
  build/dev/bin/conformance "$@" >"$results/conformance" 2>&1
  local code=$?
  grep '^SKIP' "$results/conformance" >>"$results/skips"
  grep -vE '^(SKIP|NOTE)' "$results/conformance"
  local p f s
  if read -r p f s < <(tail -n 1 "$results/conformance" |
    sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p') && [ -n "${s:-}" ]; then
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    { [ "$f" -eq 0 ] && [ $code -eq 0 ]; } || failed_steps+=("$name")
  else
    failed=$((failed + 1))
    failed_steps+=("$name died")
  fi
}

programs() { # the Catch2 programs of a build; those with network namespaces last
  local program
  for program in "$root/build/$1/bin"/test_*; do
    program=${program##*/}
    case $program in
      test_kernel | test_lab | test_daemon) ;;
      *) echo "$program" ;;
    esac
  done
  for program in test_lab test_kernel test_daemon; do
    [ ! -x "$root/build/$1/bin/$program" ] || echo "$program"
  done
}

run_tests() {
  local kind=$1 program
  for program in $(programs "$kind"); do
    catch2 "$kind" "$program"
  done
}

step "build dev" scripts/build.sh dev && {
  run_tests dev
  conformance dev test/conformance
}
if [ "$mode" != --quick ]; then
  # The daemon and the tests of it under the sanitizers; the tests of the test tools need them less.
  for kind in asan tsan; do
    step "build $kind" scripts/build.sh "$kind" product_tests && {
      run_tests "$kind"
      conformance "$kind" test/conformance --filter packet-flow- --agent "build/$kind/bin/kube-shunt"
    }
  done
  step "linters" scripts/check.sh --all
  step "fuzz for a minute" scripts/fuzz.sh 60
fi

echo
if [ -s "$results/skips" ]; then
  echo "skipped:"
  # Cases that are skipped for one reason are one line with their number.
  sed -E 's/^SKIP ([^:]+): /\1\t/' "$results/skips" | awk -F'\t' '{ why[$2]++; if (why[$2] == 1) first[$2] = $1 }
    END { for (w in why) printf "  %4d x %s (first: %s)\n", why[w], w, first[w] }' | sort -rn
fi
for name in "${failed_steps[@]:-}"; do
  [ -n "$name" ] && echo "FAILED: $name"
done
echo "$passed passed, $failed failed, $skipped skipped in $((SECONDS - started)) s"
[ "$failed" -eq 0 ] && [ ${#failed_steps[@]} -eq 0 ]
