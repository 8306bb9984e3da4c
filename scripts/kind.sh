#!/usr/bin/env bash
# A cluster of kind without kube-proxy, kube-shunt in it, and a Service that must answer. For machines with docker or podman,
# kind and kubectl; takes a few minutes and removes the cluster in the end.
#   scripts/kind.sh [--dry-run] [--keep] [--no-build]
# --dry-run prints the commands; --keep leaves the cluster; --no-build takes the image that is there.
set -euo pipefail
cd "$(dirname "$0")/.."
dry_run='' keep='' build=yes
for option in "$@"; do
  case $option in
    --dry-run) dry_run=yes ;;
    --keep) keep=yes ;;
    --no-build) build='' ;;
    *)
      echo "usage: scripts/kind.sh [--dry-run] [--keep] [--no-build]" >&2
      exit 2
      ;;
  esac
done
cluster=kube-shunt image=localhost/kube-shunt:dev context=kind-$cluster

run() { # run COMMAND...: says it, and does it unless --dry-run
  printf '+ %s\n' "$*"
  [ -n "$dry_run" ] || "$@"
}

engine=docker
if ! command -v docker >/dev/null && command -v podman >/dev/null; then
  engine=podman
  export KIND_EXPERIMENTAL_PROVIDER=podman
fi
if [ -z "$dry_run" ]; then
  for tool in "$engine" kind kubectl; do
    command -v "$tool" >/dev/null || {
      echo "kind.sh: $tool is missing (or say --dry-run)" >&2
      exit 1
    }
  done
fi

archive=$(mktemp -u "${TMPDIR:-/tmp}/kube-shunt-image-XXXXXX.tar")
# shellcheck disable=SC2317  # called by the trap
clean_up() {
  rm -f "$archive"
  if [ -z "$keep" ]; then
    run kind delete cluster --name "$cluster"
  fi
}
trap clean_up EXIT

if [ -n "$build" ]; then
  run scripts/image.sh --engine "$engine" --tag "$image"
fi
# Nodes get no network of their pods' before kube-shunt runs, so nothing waits here.
run kind create cluster --name "$cluster" --config deploy/kubernetes/kind/cluster.yaml
# By way of an archive: kind's own loading of an image knows docker only.
run "$engine" save --output "$archive" "$image"
run kind load image-archive --name "$cluster" "$archive"
run kubectl --context "$context" apply -k deploy/kubernetes/kind
run kubectl --context "$context" -n kube-system rollout status daemonset/kube-shunt --timeout 180s
run kubectl --context "$context" wait --for=condition=Ready nodes --all --timeout 180s
run kubectl --context "$context" -n kube-system rollout status deployment/coredns --timeout 180s
run kubectl --context "$context" apply -f deploy/kubernetes/kind/smoke.yaml
run kubectl --context "$context" rollout status deployment/hello --timeout 180s

# From a pod, by the ClusterIP and the name; and from a node that may have no pod of it, by the NodePort.
probe=registry.k8s.io/e2e-test-images/agnhost:2.53
run kubectl --context "$context" run probe --image "$probe" --restart=Never --rm --attach --quiet --command -- \
  sh -c 'for i in 1 2 3 4 5 6 7 8 9 10; do curl -sf -m 5 http://hello.default.svc.cluster.local/hostname || exit 1; echo; done'
if [ -n "$dry_run" ]; then
  node=NODE-ADDRESS
else
  node=$(kubectl --context "$context" get node "$cluster-worker" \
    -o 'jsonpath={.status.addresses[?(@.type=="InternalIP")].address}')
fi
run "$engine" exec "$cluster-control-plane" curl -sf -m 5 "http://$node:30080/hostname"
[ -n "$dry_run" ] || echo "kind.sh: a Deployment answers by ClusterIP, name and NodePort"
