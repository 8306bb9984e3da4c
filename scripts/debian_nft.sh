#!/usr/bin/env bash
# The nft of another Debian release, with that release's libraries, unpacked and never installed:
#   scripts/debian_nft.sh trixie      prints the path of a program that takes nft's arguments
# Downloaded once, with apt, to build/nft/. Exits with 125 and the reason when it cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${1:?usage: scripts/debian_nft.sh SUITE}
directory=$PWD/build/nft/$suite

if [ ! -x "$directory/nft" ]; then
  # shellcheck disable=SC2016  # apt expands it
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 '/debian/\?$') || {
    echo "debian_nft.sh: apt knows no mirror of Debian" >&2
    exit 125
  }
  mkdir -p "$PWD/build/nft"
  work=$(mktemp -d "$PWD/build/nft/unpacking.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work"/{lists,archives/partial,root,etc}
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/etc/sources.list"
  : >"$work/status" # as if nothing were installed, so that every library comes along
  apt=(apt-get -qq -o "Dir::Etc=$work/etc" -o "Dir::Etc::parts=/nonexistent" -o "Dir::State::lists=$work/lists" -o "Dir::State::status=$work/status"
    -o "Dir::Cache=$work" -o "Dir::Cache::archives=$work/archives" -o APT::Sandbox::User=root -o Debug::NoLocking=1)
  if ! { "${apt[@]}" update && "${apt[@]}" install -y --download-only --no-install-recommends nftables; } >"$work/log" 2>&1; then
    tail -n 5 "$work/log" >&2
    echo "debian_nft.sh: cannot get nftables of $suite from $mirror" >&2
    exit 125
  fi
  for package in "$work"/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work/root" --keep-directory-symlink
  done
  cat >"$work/root/nft" <<'SH'
#!/bin/sh
d=$(dirname "$(readlink -f "$0")")
for ld in "$d"/usr/lib64/ld-linux-*.so.* "$d"/lib64/ld-linux-*.so.*; do
  [ ! -x "$ld" ] || exec "$ld" --library-path "$d/usr/lib/$(uname -m)-linux-gnu:$d/lib/$(uname -m)-linux-gnu" "$d/usr/sbin/nft" "$@"
done
SH
  chmod +x "$work/root/nft"
  mv -T "$work/root" "$directory" 2>/dev/null || true # somebody else was faster
fi
echo "$directory/nft"
