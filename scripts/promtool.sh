#!/usr/bin/env bash
# promtool of Debian's package prometheus, unpacked and never installed: installing it would start a server.
#   scripts/promtool.sh ARGUMENTS...
# Downloaded once, with apt, to build/promtool/. Exits with 125 and the reason when it cannot be had.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
directory=$root/build/promtool

if [ ! -x "$directory/usr/bin/promtool" ]; then
  mkdir -p "$root/build"
  work=$(mktemp -d "$root/build/promtool.unpacking.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir "$work/root"
  # apt-get download works as anybody, but apt drops root's rights to a user who cannot write here.
  download() { (cd "$work" && apt-get -qq -o APT::Sandbox::User=root download prometheus); }
  if ! download >"$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    echo "promtool.sh: cannot download Debian's package prometheus (is apt-get update due?)" >&2
    exit 125
  fi
  for package in "$work"/prometheus_*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work/root" ./usr/bin/promtool
  done
  mv -T "$work/root" "$directory" 2>/dev/null || true # somebody else was faster
fi
exec "$directory/usr/bin/promtool" "$@"
