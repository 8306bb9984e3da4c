#!/usr/bin/env bash
# Installs what building and testing need, from Debian's packages. Does nothing when everything is there.
#   scripts/install.sh               compiler, libraries, network tools
#   scripts/install.sh --linters     and clang 14 for formatting, analysis and fuzzing (Debian 12)
#   scripts/install.sh --vm          and qemu for scripts/vm.sh (90 MB; the kernel, 70 MB, comes when it is used)
# Debian 12 has Catch2 v3 in its backports only; the suite is added from the mirror that apt uses already.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config python3
  libssl-dev libmnl-dev libnftnl-dev libfmt-dev libspdlog-dev nlohmann-json3-dev
  libyaml-cpp-dev libcli11-dev libexpected-dev libprotozero-dev
  zlib1g-dev libcpp-httplib-dev prometheus-cpp-dev libnl-3-dev libnl-genl-3-dev libnl-route-3-dev
  nftables iptables ipset iproute2 openssl curl
)

for option in "$@"; do
  case $option in
    --linters) packages+=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev shellcheck yamllint python3-yaml python3-jsonschema git) ;;
    --vm) packages+=(qemu-system-x86 busybox-static kmod ipvsadm) ;;
    *)
      echo "usage: scripts/install.sh [--linters] [--vm]" >&2
      exit 2
      ;;
  esac
done

# shellcheck source=/dev/null
. /etc/os-release

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

missing=()
for package in "${packages[@]}"; do
  installed "$package" || missing+=("$package")
done
has_catch2() { dpkg --compare-versions "$(dpkg-query -W -f '${Version}' catch2 2>/dev/null || echo 0)" ge 3; }
if [ ${#missing[@]} -eq 0 ] && has_catch2; then
  exit 0
fi

if [ "$(id -u)" -ne 0 ]; then
  echo "install.sh: missing ${missing[*]} and not root; install them and try again" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
if ! has_catch2; then
  if ! apt-cache madison catch2 | awk '{print $3}' | grep -q '^3'; then
    # shellcheck disable=SC2016  # apt expands these
    mirror=$(apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' |
      awk -v suite="$VERSION_CODENAME" '$1 == suite { print $2; exit }')
    if [ -z "$mirror" ]; then
      echo "install.sh: no apt source for $VERSION_CODENAME, cannot add its backports" >&2
      exit 1
    fi
    echo "deb $mirror $VERSION_CODENAME-backports main" >"/etc/apt/sources.list.d/$VERSION_CODENAME-backports.list"
    apt-get update -qq
  fi
  echo "installing: catch2"
  version=$(apt-cache madison catch2 | awk '$3 ~ /^3/ { print $3; exit }')
  apt-get install -y -qq --no-install-recommends "catch2=$version" "libcatch2-dev=$version" >/dev/null
fi
