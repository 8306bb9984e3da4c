#!/usr/bin/env bash
# Builds the fuzzers and runs each for SECONDS, from seeds made of what is recorded of a real API
# server. Fails when one finds something; the input that did it stays in build/fuzz/findings/.
#   scripts/fuzz.sh [SECONDS]    60 unless told
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
scripts/build.sh fuzz
findings=build/fuzz/findings
mkdir -p "$findings"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Lists and errors whole, and from the watch streams every event and every object alone. The first
# byte of an input chooses the target of the fuzzer (kTargets); the framer reads the size of its chunks
# from a second one.
seed_decode_json() { # DIRECTORY
  local out=$1 raw=$1.raw recordings=test/recordings file event=0 line selector
  mkdir "$raw"
  for file in "$recordings"/list-*.json.body; do
    cp "$file" "$raw/list-$(basename "$file")"
  done
  for file in "$recordings"/error-*.json.body; do
    cp "$file" "$raw/status-$(basename "$file")"
  done
  for file in "$recordings"/*watch*.json.body; do
    case $file in */list-*) continue ;; esac
    cp "$file" "$raw/stream-$(basename "$file")"
    while IFS= read -r line; do
      event=$((event + 1))
      printf '%s' "$line" >"$raw/event-$event"
      printf '%s' "$line" | sed -E 's/^\{"type":"[A-Z]+","object":(.*)\}$/\1/' >"$raw/object-$event"
    done <"$file"
  done
  with_prefix() { # HEX KIND
    for file in "$raw/$2"-*; do
      { printf '%b' "\\x$1" && cat "$file"; } >"$out/$1-$(basename "$file")"
    done
  }
  for selector in 00 01 02 03; do with_prefix $selector list; done
  for selector in 04 05 06 07; do with_prefix $selector event; done
  for selector in 08 09 0a 0b; do with_prefix $selector object; done
  with_prefix 0c status
  with_prefix 0d~ stream
}

failed=0
for fuzzer in build/fuzz/bin/fuzz_*; do
  name=$(basename "$fuzzer")
  mkdir "$work/$name" "$work/$name.new"
  case $name in
    fuzz_decode_json) seed_decode_json "$work/$name" ;;
  esac
  echo "== $name, ${seconds}s, $(find "$work/$name" -type f | wc -l) seeds"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 \
    -print_funcs=0 -print_final_stats=1 -artifact_prefix="$findings/$name-" "$work/$name.new" "$work/$name" || failed=1
done
exit $failed
