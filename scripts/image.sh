#!/usr/bin/env bash
# Builds the image with whichever engine is there: podman, docker, nerdctl or buildah.
#   scripts/image.sh [--engine NAME] [--tag NAME:TAG] [--base IMAGE] [--dry-run] [-- ARGUMENT...]
# ARGUMENTs go to the engine's build command. --base is the image that it is built in (Debian 12 or 13).
set -euo pipefail
cd "$(dirname "$0")/.."
engine='' tag=localhost/kube-shunt:dev base='' dry_run='' arguments=()
while [ $# -gt 0 ]; do
  case $1 in
    --engine) engine=${2:?--engine takes a name} && shift ;;
    --tag) tag=${2:?--tag takes NAME:TAG} && shift ;;
    --base) base=${2:?--base takes an image} && shift ;;
    --dry-run) dry_run=yes ;;
    --)
      shift
      arguments+=("$@")
      break
      ;;
    *)
      echo "usage: scripts/image.sh [--engine NAME] [--tag NAME:TAG] [--base IMAGE] [--dry-run] [-- ARGUMENT...]" >&2
      exit 2
      ;;
  esac
  shift
done
for candidate in podman docker nerdctl buildah; do
  if [ -z "$engine" ] && command -v "$candidate" >/dev/null; then
    engine=$candidate
  fi
done
if [ -z "$engine" ]; then
  echo "image.sh: none of podman, docker, nerdctl and buildah is installed" >&2
  [ -n "$dry_run" ] || exit 1
  engine=docker
fi
command=("$engine" build --file Dockerfile --tag "$tag")
if [ -n "$base" ]; then
  command+=(--build-arg "BASE=$base")
fi
command+=("${arguments[@]}" .)
echo "+ ${command[*]}"
[ -n "$dry_run" ] || exec "${command[@]}"
