#!/usr/bin/env bash
# Builds the Debian package of this release into build/release/: kube-shunt and, apart, its debug symbols.
#   scripts/package.sh
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release kube-shunt
# dpkg-shlibdeps finds out which packages the binary needs.
command -v dpkg-shlibdeps >/dev/null || {
  echo "package.sh: dpkg-shlibdeps is missing; install dpkg-dev" >&2
  exit 1
}
cd build/release
rm -f kube-shunt*.deb kube-shunt*.ddeb
cpack -G DEB >cpack.log 2>&1 || {
  cat cpack.log >&2
  exit 1
}
ls -1 "$PWD"/kube-shunt*.deb "$PWD"/kube-shunt*.ddeb
