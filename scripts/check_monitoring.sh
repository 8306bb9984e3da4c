#!/usr/bin/env bash
# Checks deploy/monitoring: the alerting rules and their tests, the dashboard, and that each metric they name is
# one that kube-shunt has. Builds one small program for the last.
#   scripts/check_monitoring.sh
set -euo pipefail
cd "$(dirname "$0")/.."
folder=deploy/monitoring
failed=0

status=0
scripts/promtool.sh --version >/dev/null || status=$?
if [ $status -eq 125 ]; then
  echo "SKIP: the rules were not checked, promtool cannot be had"
elif [ $status -ne 0 ]; then
  failed=1
else
  scripts/promtool.sh check rules $folder/alerts.yaml || failed=1
  scripts/promtool.sh test rules $folder/alerts_test.yaml || failed=1
fi

scripts/build.sh dev sample_metrics >/dev/null
sample=$(mktemp)
trap 'rm -f "$sample"' EXIT
build/dev/bin/sample_metrics >"$sample"
if [ $status -eq 0 ]; then
  scripts/promtool.sh check metrics <"$sample" >"$sample.lint" 2>&1 || true # its taste is not kube-proxy's
  if grep -i 'error' "$sample.lint"; then
    failed=1
  fi
  rm -f "$sample.lint"
fi

python3 - "$sample" $folder <<'EOF' || failed=1
import json, pathlib, re, sys

sample, folder = pathlib.Path(sys.argv[1]).read_text(), pathlib.Path(sys.argv[2])
there = {line.split("{")[0].split(" ")[0] for line in sample.splitlines() if line and line[0] != "#"}
there.add("up")  # Prometheus's own
wrong = []

def named_in(text):
    return set(re.findall(r"\b(?:kubeproxy|kubeshunt|kubernetes|process|rest_client)_[a-z0-9_]+|\bup\b(?=\{)", text))

def check(where, text):
    for name in sorted(named_in(text) - there):
        wrong.append(f"{where}: no such metric: {name}")

rules = (folder / "alerts.yaml").read_text()
check("alerts.yaml", rules)
check("alerts_test.yaml", (folder / "alerts_test.yaml").read_text())
tests = (folder / "alerts_test.yaml").read_text()
for alert in re.findall(r"- alert: (\w+)", rules):
    if not re.search(rf"- alertname: {alert}\n", tests):
        wrong.append(f"alerts_test.yaml: {alert} never fires")
    if f"alertname: {alert}, " not in tests:
        wrong.append(f"alerts_test.yaml: {alert} is nowhere expected not to fire")

dashboard = json.loads((folder / "dashboard.json").read_text())
panels = [p for p in dashboard["panels"] if p["type"] != "row"]
queries = 0
for panel in panels:
    for target in panel.get("targets", []):
        queries += 1
        if not named_in(target["expr"]):
            wrong.append(f"dashboard.json: {panel['title']}: asks for no metric of ours")
        check(f"dashboard.json: {panel['title']}", target["expr"])
for variable in dashboard["templating"]["list"]:
    check("dashboard.json: a variable", str(variable.get("query", "")))
ids = [p["id"] for p in dashboard["panels"]]
if len(ids) != len(set(ids)):
    wrong.append("dashboard.json: two panels of one id")
if not panels or not queries:
    wrong.append("dashboard.json: nothing is shown")
print("\n".join(wrong) if wrong else f"{len(there)} series names, {len(panels)} panels, {queries} queries: ok")
sys.exit(1 if wrong else 0)
EOF
[ $failed -eq 0 ] && echo "check_monitoring: ok"
exit $failed
