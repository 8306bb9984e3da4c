#!/usr/bin/env bash
# People save and restore what `nft list ruleset` prints, and other tools parse it. So nft must be able to print the tables of
# a running daemon, all of them, and what it prints must make the same tables in an empty namespace: listed, loaded and listed
# again, nothing may differ but counters, clocks and the order of elements. Tried with the nft that is installed and with that
# of another Debian release.
#   test/listing/listing.sh [PROGRAMS]    where kube-shunt, test-apiserver and lab are: build/dev/bin unless told
# Prints a line for each nft, and last the counts. Needs root.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
bin=${1:-build/dev/bin}
name=listing$$
node=(ip netns exec "shunt-$name-node")
copy=shunt-$name-copy
work=$(mktemp -d)
passed=0 failed=0 skipped=0 server='' daemon=''

# shellcheck disable=SC2317  # called by the trap
cleanup() {
  local pid
  for pid in $daemon $server; do
    kill "$pid" 2>/dev/null
  done
  "$bin/lab" down "$name" >/dev/null 2>&1
  rm -rf "$work"
}
trap cleanup EXIT

finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}
skip() {
  skipped=$((skipped + 1))
  echo "SKIP $1: $2"
}
fail() {
  failed=$((failed + 1))
  echo "FAIL $1: $2"
}

start_daemon() {
  "$bin/lab" up "$name" --pod a=10.64.0.1,fd64::1 >"$work/lab" 2>&1 || return 1
  "${node[@]}" "$bin/test-apiserver" --pki "$work/pki" --listen 127.0.0.1:6443 --load test/listing/objects.yaml >"$work/server" 2>&1 &
  server=$!
  wait_for "$work/server" 'listening on https' || return 1
  "${node[@]}" "$bin/kube-shunt" --kubeconfig "$work/pki/kubeconfig" --hostname-override edge-a --conntrack-max-per-core 0 \
    --cluster-cidr 10.64.0.0/14,fd64::/48 >"$work/daemon" 2>&1 &
  daemon=$!
  wait_for "$work/daemon" 'first sync done' || return 1
  # Clients that session affinity has to remember are elements as well. Nobody listens: the first packet is enough.
  timeout 10 "$bin/lab" connect "$name" a --from 10.64.0.1 --to 10.112.0.6:80 --count 3 >"$work/clients" 2>&1
  timeout 10 "$bin/lab" connect "$name" outside --from 198.51.100.7 --to 10.80.0.10:30082 --count 3 >>"$work/clients" 2>&1
  timeout 10 "$bin/lab" connect "$name" a --from fd64::1 --to '[fdc0::16]:80' --count 3 >>"$work/clients" 2>&1
  sleep 2 # and some elements live for a second, which must not be the one between two listings
}
wait_for() { # wait_for FILE TEXT
  for _ in $(seq 600); do
    grep -q "$2" "$1" 2>/dev/null && return
    sleep 0.05
  done
  return 1
}

# What a listing must have in it to be one of the whole: every Service with endpoints by name, in both families.
complete() { # complete LISTING
  local text
  for text in 'table ip kube-shunt' 'table ip6 kube-shunt' shop/plain:http shop/node-port:dns shop/balancer-local shop/external shop/sticky: \
    shop/sticky-everywhere shop/sticky-six:quic; do
    grep -qF "$text" "$1" || {
      echo "$text"
      return 1
    }
  done
}

# What one nft makes of the tables.
round_trip() { # round_trip NAME NFT
  local title nft=$2 missing
  title="$1 ($("$nft" --version 2>/dev/null))"
  if ! "${node[@]}" "$nft" list ruleset >"$work/printed" 2>"$work/errors"; then
    fail "$title" "cannot print the tables: $(tail -n 1 "$work/errors")"
    return
  fi
  if ! missing=$(complete "$work/printed"); then
    fail "$title" "the print has no $missing"
    return
  fi
  ip netns add "$copy"
  if ! ip netns exec "$copy" "$nft" -f "$work/printed" 2>"$work/errors"; then
    fail "$title" "cannot load what it printed: $(head -n 2 "$work/errors" | tr -s '\n\t ' ' ')"
  else
    ip netns exec "$copy" "$nft" list ruleset >"$work/again"
    python3 test/listing/normalise.py <"$work/printed" >"$work/before"
    python3 test/listing/normalise.py <"$work/again" >"$work/after"
    if diff "$work/before" "$work/after" >"$work/difference"; then
      passed=$((passed + 1))
      echo "PASS $title: $(wc -l <"$work/before") lines"
    else
      fail "$title" "what it loaded is not what it printed:"
      head -n 20 "$work/difference"
    fi
  fi
  ip netns del "$copy"
}

if [ "$(id -u)" -ne 0 ]; then
  skip listing "needs root"
  finish
fi
if ! start_daemon; then
  fail listing "the daemon does not get to its first sync"
  tail -n 5 "$work"/{lab,server,daemon} 2>/dev/null
  finish
fi
round_trip "installed nft" "$(command -v nft)"
# shellcheck source=/dev/null
other=$(. /etc/os-release && [ "$VERSION_CODENAME" = trixie ] && echo bookworm || echo trixie)
if nft=$(scripts/debian_nft.sh "$other" 2>"$work/errors"); then
  round_trip "nft of $other" "$nft"
else
  skip "nft of $other" "$(tail -n 1 "$work/errors")"
fi
finish
