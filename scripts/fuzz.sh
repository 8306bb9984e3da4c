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

# Lists and errors whole, streams for the framer, and of each stream every event and its object.
seed_decode_protobuf() { # DIRECTORY
  python3 - test/recordings "$1" <<'EOF'
import pathlib, struct, sys

recordings, out = map(pathlib.Path, sys.argv[1:])

def seed(selectors, name, data):
    for selector in selectors:
        (out / f"{selector[0]:02x}-{name}").write_bytes(selector + data)

def each(*numbers):
    return [bytes([n]) for n in numbers]

for body in sorted(recordings.glob("*.pb.body")):
    data = body.read_bytes()
    if "watch" not in body.name:
        seed(each(0, 1, 2, 3), body.name, data)
        continue
    seed([b"\x0d\x07"], body.name, data)
    number = 0
    while data:
        size = struct.unpack(">I", data[:4])[0]
        event, data = data[4:4 + size], data[4 + size:]
        name = f"{body.name}-{number}"
        number += 1
        seed(each(4, 5, 6, 7), name, event)
        envelope = event[event.index(b"k8s\0"):]
        seed(each(12), name, envelope)
        # The message inside stands behind the envelope's typeMeta and its own tag and length.
        raw = envelope[6 + envelope[5]:]
        end = 1
        while raw[end] & 0x80:
            end += 1
        seed(each(8, 9, 10, 11), name, raw[end + 1:])
EOF
}

# Lists of both formats in pieces of one byte or 64, and gzip.
seed_list_decoders() { # DIRECTORY
  local file name
  with_head() { # TWO-BYTES NAME
    { printf '%b' "$1" && cat; } >"$2"
  }
  for file in test/recordings/list-*.body; do
    name=$(basename "$file")
    case $file in
      *.json.body)
        with_head '\x00\x3f' "$1/00-$name" <"$file"
        with_head '\x01\x00' "$1/01-$name" <"$file"
        ;;
      *)
        with_head '\x02\x3f' "$1/02-$name" <"$file"
        with_head '\x03\x00' "$1/03-$name" <"$file"
        ;;
    esac
    gzip -c "$file" | with_head '\x04\x3f' "$1/04-$name"
  done
}

failed=0
for fuzzer in build/fuzz/bin/fuzz_*; do
  name=$(basename "$fuzzer")
  mkdir "$work/$name" "$work/$name.new"
  case $name in
    fuzz_decode_json) seed_decode_json "$work/$name" ;;
    fuzz_decode_protobuf) seed_decode_protobuf "$work/$name" ;;
    fuzz_list_decoders) seed_list_decoders "$work/$name" ;;
  esac
  echo "== $name, ${seconds}s, $(find "$work/$name" -type f | wc -l) seeds"
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 \
    -print_funcs=0 -print_final_stats=1 -artifact_prefix="$findings/$name-" "$work/$name.new" "$work/$name" || failed=1
done
exit $failed
