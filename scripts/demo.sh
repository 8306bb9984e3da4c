#!/usr/bin/env bash
# The main job, shown: an API server, a node with pods, and kube-shunt between them, in network namespaces of this
# machine. Needs root on Debian 12 or 13; installs what is missing, builds, and leaves nothing behind but the build.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "$(id -u)" -ne 0 ]; then
  echo "demo.sh: network namespaces need root" >&2
  exit 1
fi
say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }

say "Installing and building"
scripts/install.sh
scripts/build.sh release kube-shunt test-apiserver lab | tail -n 1
bin=$PWD/build/release/bin
name=demo$$
dir=$(mktemp -d /tmp/kube-shunt-demo-XXXXXX)
server_pid='' daemon_pid='' monitor_pid=''

# shellcheck disable=SC2317  # called by the trap
cleanup() {
  for pid in $monitor_pid $daemon_pid $server_pid; do
    kill "$pid" 2>/dev/null || true
  done
  "$bin/lab" down "$name" >/dev/null 2>&1 || true
  rm -rf "$dir"
}
trap cleanup EXIT

node=(ip netns exec "shunt-$name-node")  # not a function: in the background, $! must be the program
api() { # api METHOD PATH [BODY]
  local type=application/json
  [ "$1" = PATCH ] && type=application/merge-patch+json
  "${node[@]}" curl -sS -f -o /dev/null -X "$1" -H "Content-Type: $type" --data-binary "${3:-}" "http://127.0.0.1:8080$2"
}
start_daemon() {
  "${node[@]}" "$bin/kube-shunt" --kubeconfig "$dir/pki/kubeconfig" --hostname-override edge-a \
    --cluster-cidr 10.64.0.0/14,fd64::/48 --conntrack-max-per-core 0 --status-socket "$dir/status" >>"$dir/daemon.log" 2>&1 &
  daemon_pid=$!
}
wait_for_text() { # wait_for_text FILE TEXT
  for _ in $(seq 300); do
    grep -q "$2" "$1" 2>/dev/null && return
    sleep 0.05
  done
  echo "demo.sh: waited in vain for '$2':" >&2
  cat "$1" >&2
  exit 1
}
requests() { # requests COUNT: from a pod of the node, who answered how often
  "$bin/lab" connect "$name" client --from 10.64.0.100 --to 10.112.0.10:80 --count "$1"
}
endpoint() { # endpoint N READY ZONE: of web-N
  printf '{"addresses":["10.64.0.%s"],"nodeName":"edge-a","conditions":{"ready":%s},"zone":"%s","hints":{"forZones":[{"name":"%s"}]}}' \
    "$1" "$2" "$3" "$3"
}
slice=/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices/web-1

say "A node, three pods with a web server, a client pod, an outside world"
"$bin/lab" up "$name" --pod web-1=10.64.0.1 --pod web-2=10.64.0.2 --pod web-3=10.64.0.3 --pod client=10.64.0.100
for n in 1 2 3; do
  "$bin/lab" serve "$name" "web-$n" --listen "10.64.0.$n:8080" --background
done

say "An API server (of the tests; HTTPS, client certificates) and kube-shunt"
cat >"$dir/objects.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata: {name: edge-a, labels: {topology.kubernetes.io/zone: z1}}
status: {addresses: [{type: InternalIP, address: 10.80.0.10}, {type: InternalIP, address: "fd80::10"}]}
---
apiVersion: networking.k8s.io/v1
kind: ServiceCIDR
metadata: {name: kubernetes}
spec: {cidrs: [10.112.0.0/16, "fdc0::/112"]}
YAML
"${node[@]}" "$bin/test-apiserver" --pki "$dir/pki" --listen 127.0.0.1:6443 --insecure-listen 127.0.0.1:8080 --rbac kube-proxy \
  --load "$dir/objects.yaml" >"$dir/server.log" 2>&1 &
server_pid=$!
wait_for_text "$dir/server.log" "http://127.0.0.1:8080"
start_daemon
wait_for_text "$dir/daemon.log" "first sync done"
grep -E 'starts|first sync' "$dir/daemon.log"

say "A Service with three endpoints: 300 requests to its ClusterIP 10.112.0.10"
api POST /_test/apply '{"apiVersion":"v1","kind":"List","items":[
  {"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"},
   "spec":{"clusterIP":"10.112.0.10","ports":[{"name":"http","port":80}]}},
  {"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
   "metadata":{"namespace":"shop","name":"web-1","labels":{"kubernetes.io/service-name":"web"}},
   "addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],
   "endpoints":[{"addresses":["10.64.0.1"],"nodeName":"edge-a"},{"addresses":["10.64.0.2"],"nodeName":"edge-a"},
                {"addresses":["10.64.0.3"],"nodeName":"edge-a"}]}]}'
sleep 0.3
requests 300

say "web-3 turns unready: how long until the kernel knows?"
# The clock starts before the request to the API server is sent and stops when the kernel says that the map changed.
"${node[@]}" nft monitor elements 2>/dev/null | while read -r line; do
  case $line in *endpoints*) echo "$EPOCHREALTIME $line" ;; esac
done >"$dir/monitor.log" &
monitor_pid=$!
sleep 0.5
body="{\"endpoints\":[$(endpoint 1 true z1),$(endpoint 2 true z2),$(endpoint 3 false z1)]}"
body=${body//\"hints\"/\"unusedHints\"}
# shellcheck disable=SC2016  # expanded by the inner shell
"${node[@]}" bash -c 'exec 3<>/dev/tcp/127.0.0.1/8080
  echo "$EPOCHREALTIME"
  printf "PATCH %s HTTP/1.1\r\nHost: demo\r\nConnection: close\r\nContent-Type: application/merge-patch+json\r\nContent-Length: %s\r\n\r\n%s" \
    "$1" "${#2}" "$2" >&3
  cat <&3 >/dev/null' patch "$slice" "$body" >"$dir/sent"
wait_for_text "$dir/monitor.log" endpoints
kill "$monitor_pid" 2>/dev/null || true
monitor_pid=''
awk -v sent="$(cat "$dir/sent")" 'NR == 1 { printf "%.1f ms from the request to the API server to the changed kernel\n", ($1 - sent) * 1000 }' \
  "$dir/monitor.log"
requests 300

say "Zone hints: the node is in z1, web-1 and web-3 are hinted for z1, web-2 for z2"
api PATCH "$slice" "{\"endpoints\":[$(endpoint 1 true z1),$(endpoint 2 true z2),$(endpoint 3 true z1)]}"
sleep 0.3
requests 300

say "From outside: NodePort 30080, and a balancer address that admits 198.51.100.0/25; clients stay with their endpoint"
api POST /_test/apply '{"apiVersion":"v1","kind":"List","items":[
  {"apiVersion":"v1","kind":"Service","metadata":{"namespace":"shop","name":"web"},
   "spec":{"type":"LoadBalancer","clusterIP":"10.112.0.10","ports":[{"name":"http","port":80,"nodePort":30080}],
           "sessionAffinity":"ClientIP","externalTrafficPolicy":"Local","loadBalancerSourceRanges":["198.51.100.0/25"]},
   "status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.4"}]}}}]}'
sleep 0.3
for to in 10.80.0.10:30080 192.0.2.4:80; do
  "$bin/lab" connect "$name" outside --from 198.51.100.7 --to "$to" --count 50
done
echo "and 198.51.100.200, which is not admitted:"
"$bin/lab" connect "$name" outside --from 198.51.100.200 --to 192.0.2.4:80 --count 3 || true

say "kill -9 of the daemon under load (200 new connections a second), and a restart"
"$bin/lab" load "$name" client --from 10.64.0.100 --to 10.112.0.10:80 --rate 200 --seconds 4 >"$dir/load" &
load_pid=$!
sleep 1
kill -9 "$daemon_pid"
wait "$daemon_pid" 2>/dev/null || true
echo "killed; the kernel goes on"
sleep 1
: >"$dir/daemon.log"
start_daemon
wait_for_text "$dir/daemon.log" "first sync done"
grep 'first sync' "$dir/daemon.log"
if ! wait "$load_pid"; then
  failed=1
fi
cat "$dir/load"

say "What is in the kernel (the classes above 8 look like those shown)"
"${node[@]}" nft list table ip kube-shunt | awk '
  /^\t(set ([a-z]+-)*class|chain pick)-/ { hide = $2 !~ /-(4|8)$/ }
  /^\t(set|map|chain)/ && !/^\t(set ([a-z]+-)*class|chain pick)-/ { hide = 0 }
  !hide'

say "Done; cleaning up"
exit "${failed:-0}"
