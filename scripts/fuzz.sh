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

# The listings of iptables-save in the tests of what kube-proxy leaves, each table alone as well.
seed_leftovers() { # DIRECTORY
  python3 - pkg/backend/leftovers/iptables_plan_test.cpp test/leftovers/stand_ins.cpp "$1" <<'EOF'
import pathlib, re, sys

*sources, out = map(pathlib.Path, sys.argv[1:])
texts = [text for source in sources for text in re.findall(r'R"\((.*?)\)"', source.read_text(), re.S) if "COMMIT" in text]
tables = [table for text in texts for table in re.findall(r"^\*.*?^COMMIT\n", text, re.S | re.M)]
for number, seed in enumerate(texts + tables):
    (out / str(number)).write_text(seed)
EOF
}

# kubeadm's file, and one with a value in every kind of field.
seed_config() { # DIRECTORY
  cp pkg/config/testdata/kubeadm/config.conf "$1/kubeadm"
  cp test/fuzz/config-seed.yaml "$1/many"
}

# Requests as clients of the health and metrics servers send them, whole and in pieces of 17 bytes.
seed_http_request() { # DIRECTORY
  local number=0 request
  for request in 'GET /healthz HTTP/1.1\r\nHost: a\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n' \
    'HEAD /metrics?x=y HTTP/1.0\n\n' 'PUT /debug/flags/v HTTP/1.1\r\nContent-Length: 1\r\n\r\n4' \
    'POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'; do
    number=$((number + 1))
    printf '%b' "\xff$request" >"$1/whole-$number"
    printf '%b' "\x01$request" >"$1/pieces-$number"
  done
}

# What the recordings hold and some YAML; JSON is YAML as well.
seed_manifests() { # DIRECTORY
  local file name
  for file in test/recordings/list-*.json.body test/listing/objects.yaml; do
    name=$(basename "$file")
    { printf '\0' && cat "$file"; } >"$1/yaml-$name"
    { printf '\1' && cat "$file"; } >"$1/json-$name"
  done
  printf '\0a: &x [1, &y {b: 0x1f, c: yes}]\nd: *x\n---\n- ? k\n  : !!str 1\n- |\n  t\n...\n' >"$1/yaml-odd"
}

# An empty cluster, and one Service cut short: the fuzzer finds the rest.
seed_snapshot() { # DIRECTORY
  printf '\1\1n\2\0\0' >"$1/empty"
  printf '\1\1n\2\0\1\0\2ns\1w\0\0\0\0' >"$1/service"
}

seed() { # NAME DIRECTORY
  case $1 in
    fuzz_config) seed_config "$2" ;;
    fuzz_decode_json) seed_decode_json "$2" ;;
    fuzz_decode_protobuf) seed_decode_protobuf "$2" ;;
    fuzz_http_request) seed_http_request "$2" ;;
    fuzz_leftovers) seed_leftovers "$2" ;;
    fuzz_list_decoders) seed_list_decoders "$2" ;;
    fuzz_manifests) seed_manifests "$2" ;;
    fuzz_snapshot) seed_snapshot "$2" ;;
  esac
}

# As many at a time as there are processors; what one says is printed when it ends.
failed=0
running=()
finish_one() {
  local name=${running[0]%%:*} pid=${running[0]##*:}
  running=("${running[@]:1}")
  # One line when nothing was found: a dictionary and statistics help nobody then.
  if wait "$pid"; then
    echo "$(head -n 1 "$work/$name.log"): $(sed -nE 's/^stat::number_of_executed_units: *//p' "$work/$name.log") runs," \
      "$(sed -nE 's/^stat::new_units_added: *//p' "$work/$name.log") new inputs, nothing found"
  else
    failed=1
    echo "$(head -n 1 "$work/$name.log"): FAILED"
    tail -n +2 "$work/$name.log" | grep -vE '^(#|"|stat::)' | tail -n 60
  fi
}
for fuzzer in build/fuzz/bin/fuzz_*; do
  name=$(basename "$fuzzer")
  mkdir "$work/$name" "$work/$name.new"
  seed "$name" "$work/$name"
  [ ${#running[@]} -lt "$(nproc)" ] || finish_one
  {
    echo "== $name, ${seconds}s, $(find "$work/$name" -type f | wc -l) seeds"
    "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 -print_funcs=0 \
      -print_final_stats=1 -artifact_prefix="$findings/$name-" "$work/$name.new" "$work/$name"
  } >"$work/$name.log" 2>&1 &
  running+=("$name:$!")
done
while [ ${#running[@]} -gt 0 ]; do
  finish_one
done
exit $failed
