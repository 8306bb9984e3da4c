#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test. Ends with a line of counts; exit code 0 only if nothing failed.
#   scripts/test.sh            everything, as CI does: dev, asan (with UBSan), tsan, a sample under other kernels, the demo, linters, some fuzzing
#   scripts/test.sh --vm       the table of kernels and back ends, whole (test/vm): an hour or more
#   scripts/test.sh --quick    the dev build only, on this kernel, no linters, no fuzzing
# Tests that need root (network namespaces, nftables) say SKIP without it.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
root=$PWD
mode=${1:-}
if [ "$mode" = --quick ]; then
  scripts/install.sh || exit 1
elif [ "$mode" = --vm ]; then
  scripts/install.sh --vm || exit 1
else
  scripts/install.sh --linters --vm || exit 1
fi

# Where nobody has built yet, nobody edits yet.
[ -d build/dev ] || export SHUNT_UNITY=ON

results=$(mktemp -d)
trap '[ -z "${endurance:-}" ] || kill "$endurance" 2>/dev/null; rm -rf "$results"' EXIT
failed_steps=()
passed=0 failed=0 skipped=0
started=$SECONDS

has_failed() { # has_failed NAME LOG: the end of what it said is said again at the very end
  failed_steps+=("$1")
  tail -n 40 "$2" >"$results/tail-${#failed_steps[@]}"
}

step() { # step NAME COMMAND...: a step that counts as one test
  local name=$1 answer=0
  shift
  echo
  echo "== $name"
  if "$@" 2>&1 | tee "$results/step"; then # pipefail: the command's own answer
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    has_failed "$name" "$results/step"
    answer=1
  fi
  # What a step could not do for lack of a tool.
  local skips
  skips=$(grep -c '^SKIP: ' "$results/step")
  skipped=$((skipped + skips))
  sed -n "s/^SKIP: /$name\t/p" "$results/step" >>"$results/skips"
  return "$answer"
}

run_catch2() { # run_catch2 REPORT LOG PROGRAM [ARGUMENT...]
  local report=$1 log=$2
  shift 2
  "$@" -r console::out=- -r "junit::out=$report" >"$log" 2>&1
}

count_catch2() { # count_catch2 NAME REPORT LOG SECONDS: counts what a program reported
  local name=$1 report=$2 log=$3 seconds=$4
  # A program that died leaves no report, or half of one.
  local counts
  if counts=$(python3 - "$report" "$results/skips" "$results/words" "$name" <<'PYTHON'
import sys, xml.etree.ElementTree as tree
report, skips, words, name = sys.argv[1:]
tests = fails = skipped = 0
with open(skips, "a") as out, open(words, "w") as said:
    for case in tree.parse(report).getroot().iter("testcase"):
        tests += 1
        faults = case.findall("failure") + case.findall("error")
        if faults:
            fails += 1
            said.write(f"{case.get('name')}\n")
            for fault in faults:
                said.writelines(f"  {line[:300]}\n" for line in (fault.text or "").splitlines()[:30] if line.strip())
        elif case.find("skipped") is not None:
            skipped += 1
            why = " ".join((case.find("skipped").text or case.find("skipped").get("message") or "").split())
            out.write(f"{name}: {case.get('name')}\t{why}\n")
print(tests - fails - skipped, fails, skipped)
PYTHON
  ); then
    local p f s
    read -r p f s <<<"$counts"
    [ "$f" -eq 0 ] || tail -n 120 "$log"
    echo "$p passed, $f failed, $s skipped in $seconds s"
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ "$f" -eq 0 ] || has_failed "$name" "$results/words"
  else
    tail -n 120 "$log"
    echo "$name died"
    failed=$((failed + 1))
    has_failed "$name died" "$log"
  fi
}

catch2() { # catch2 KIND PROGRAM [ARGUMENT...]
  local kind=$1 program=$2
  shift 2
  local report="$results/$kind-$program.xml" begin=$SECONDS build=$kind
  # The tools of test_daemon are those of the dev build; what is under the sanitizer is the daemon that it runs.
  [ "$program" != test_daemon ] || build=dev
  echo
  echo "== $kind $program"
  SHUNT_DAEMON="build/$kind/bin/kube-shunt" run_catch2 "$report" "$results/log" "build/$build/bin/$program" "$@"
  count_catch2 "$kind $program" "$report" "$results/log" $((SECONDS - begin))
}

# The minutes of load in test/daemon/endurance_test.cpp are waiting, most of them: they go beside the next build.
endurance=''
begin_endurance() {
  SHUNT_ENDURANCE_SECONDS=${SHUNT_ENDURANCE_SECONDS:-60} run_catch2 "$results/endurance.xml" "$results/endurance.log" \
    build/dev/bin/test_daemon 'endurance*' &
  endurance=$!
  endurance_began=$SECONDS
}
end_endurance() {
  [ -n "$endurance" ] || return 0
  wait "$endurance"
  echo
  echo "== endurance"
  grep -E '^(after|[0-9]+ x) nft flush' "$results/endurance.log"
  count_catch2 endurance "$results/endurance.xml" "$results/endurance.log" $((SECONDS - endurance_began))
  endurance=''
}

conformance() { # conformance NAME ARGUMENT...: cases of the bank, with the runner of the dev build
  local name="conformance ($1)"
  shift
  count_cases "$name" build/dev/bin/conformance "$@"
}

count_cases() { # count_cases NAME COMMAND...: counts what the command reports as the runner of the bank does
  local name=$1
  shift
  echo
  echo "== $name"
  "$@" >"$results/conformance" 2>"$results/conformance.err"
  local code=$?
  # "SKIP case: why", or "SKIP case, part of it: why".
  sed -n 's/^SKIP //; T; s/: /\t/p' "$results/conformance" >>"$results/skips"
  grep -vE '^(SKIP|NOTE)' "$results/conformance"
  cat "$results/conformance.err"
  local p f s
  if read -r p f s < <(tail -n 1 "$results/conformance" |
    sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, ([0-9]+) skipped$/\1 \2 \3/p') && [ -n "${s:-}" ]; then
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    { [ "$f" -eq 0 ] && [ $code -eq 0 ]; } || has_failed "$name" <(grep -vE '^(SKIP|NOTE)' "$results"/conformance{,.err} | cut -d: -f2-)
  else
    failed=$((failed + 1))
    has_failed "$name died" <(cat "$results"/conformance{,.err})
  fi
}

matrix() { # matrix [ARGUMENT...]: kernels times back ends; each cell of the table counts what was counted there
  echo
  echo "== kernels and back ends"
  test/vm/matrix.sh --out "$results/matrix" "$@" | tee "$results/matrix.out"
  local kernel back_end p f s seconds why
  while IFS=$'\t' read -r kernel back_end p f s seconds why; do
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    [ -z "$why" ] || printf '%s\t%s\n' "$kernel, $back_end" "$why" >>"$results/skips"
    [ "$f" -eq 0 ] || has_failed "$kernel, $back_end" <(grep -vE '^(SKIP|NOTE)' "$results/matrix/${kernel%% *}.log")
  done <"$results/matrix/table"
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
  for program in test_lab test_kernel; do
    [ ! -x "$root/build/$1/bin/$program" ] || echo "$program"
  done
  echo test_daemon
}

run_tests() {
  local kind=$1 program
  for program in $(programs "$kind"); do
    if [ "$kind $program" = "dev test_daemon" ]; then
      catch2 "$kind" "$program" '~endurance*'
    else
      catch2 "$kind" "$program"
    fi
  done
}

dev_tests() {
  run_tests dev
  conformance dev test/conformance
  for variant in nft legacy; do
    conformance "iptables-$variant" test/conformance --mode iptables --kinds packet-flow,conntrack \
      --agent "build/dev/bin/kube-shunt --iptables-variant $variant"
  done
  # Our own daemon as if it were somebody else's agent: what the runner does for those.
  conformance "as a foreign agent" test/conformance --filter packet-flow-cluster-ip --no-status-socket
  count_cases "the tables as nft prints them" test/listing/listing.sh
}

case $mode in
  --vm) step "build dev" scripts/build.sh dev kernel_tests && matrix ;;
  --quick)
    step "build dev" scripts/build.sh dev && {
      dev_tests
      begin_endurance
      end_endurance
    }
    ;;
  *)
    step "build dev" scripts/build.sh dev && {
      dev_tests
      matrix --every 24
      begin_endurance
    }
    ;;
esac
if [ -z "$mode" ]; then
  # The daemon and the tests of it under the sanitizers; the tests of the test tools need them less, and
  # where no thread is started there is no race.
  for kind in asan tsan; do
    tests=product_tests
    [ $kind = asan ] || tests=threaded_tests
    step "build $kind" scripts/build.sh "$kind" $tests kube-shunt
    built=$?
    end_endurance # a daemon under a sanitizer wants the machine for itself
    [ $built -eq 0 ] && {
      SHUNT_ENDURANCE_SECONDS=4 SHUNT_OUTAGE_SECONDS=6 run_tests "$kind"
      # Not under tsan: the daemon's threads are at work in test_daemon, and the bank asks for the same packets of every build.
      [ "$kind" = tsan ] || conformance "$kind" test/conformance --kinds packet-flow --agent "build/$kind/bin/kube-shunt" --patience 3
    }
  done
  step "the demo, with a release build" scripts/demo.sh
  step "linters" scripts/check.sh --all
  step "fuzz for half a minute each" scripts/fuzz.sh 30
fi

echo
if [ -s "$results/skips" ]; then
  echo "skipped:"
  # What is skipped for one reason is one line with its number.
  awk -F'\t' '{ why[$2]++; if (why[$2] == 1) first[$2] = $1 }
    END { for (w in why) printf "  %4d x %s (first: %s)\n", why[w], w, first[w] }' "$results/skips" | sort -rn
fi
# The end is all that some see of a log.
for i in "${!failed_steps[@]}"; do
  echo
  echo "== last words of ${failed_steps[i]}"
  cat "$results/tail-$((i + 1))"
done
for name in "${failed_steps[@]:-}"; do
  [ -n "$name" ] && echo "FAILED: $name"
done
[ ! -s "$results/matrix.out" ] || sed -n '/^kernel  /,$p' "$results/matrix.out"
echo "$passed passed, $failed failed, $skipped skipped in $((SECONDS - started)) s"
[ "$failed" -eq 0 ] && [ ${#failed_steps[@]} -eq 0 ]
