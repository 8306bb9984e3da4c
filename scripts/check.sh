#!/usr/bin/env bash
# The checks that need no machine of their own: format, static analysis, shell scripts, the shape of the tree.
#   scripts/check.sh [--all]    clang-tidy over what is not committed, tests too; or over all of pkg and cmd but the tests
# CI runs it with --all.
set -euo pipefail
cd "$(dirname "$0")/.."
all=${1:-}
failed=0

mapfile -t sources < <(git ls-files --cached --others --exclude-standard '*.cpp' '*.h')
if ! clang-format-14 --dry-run -Werror "${sources[@]}" 2>/tmp/format.$$; then
  grep -E 'error:' /tmp/format.$$ | cut -d: -f1 | sort -u | sed 's/^/not formatted: /'
  failed=1
fi
rm -f /tmp/format.$$

mapfile -t scripts < <(git ls-files --cached --others --exclude-standard 'scripts/*.sh' 'test/*.sh' '.ci/*' 'deploy/debian/p*')
shellcheck "${scripts[@]}" || failed=1

scripts/check_deploy.sh || failed=1
scripts/check_monitoring.sh || failed=1

# The top level is exactly this.
for entry in $(git ls-files --cached --others --exclude-standard | cut -d/ -f1 | sort -u); do
  case $entry in
    CMakeLists.txt | cmd | pkg | deploy | test | scripts | Dockerfile | README.md | LICENSE | .*) ;;
    *)
      echo "unexpected at the top level: $entry"
      failed=1
      ;;
  esac
done

# How each file would be compiled alone. Nothing is.
cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Dev >/dev/null
analyzer=()
if [ "$all" = --all ]; then
  # A fifth of the paths through a function for half the time; what is about to be committed is looked at whole.
  analyzer=(--extra-arg=-Xclang --extra-arg=-analyzer-config --extra-arg=-Xclang --extra-arg=max-nodes=40000)
  mapfile -t tidy < <(git ls-files --cached --others --exclude-standard 'pkg/*.cpp' 'cmd/*.cpp' | grep -v '_test\.cpp$')
else
  mapfile -t tidy < <(git diff --name-only --diff-filter=d HEAD -- '*.cpp' && git ls-files --others --exclude-standard '*.cpp')
fi
compiled=()
for file in "${tidy[@]}"; do
  if grep -q "$PWD/$file" build/tidy/compile_commands.json; then
    compiled+=("$file")
  fi
done
if [ ${#compiled[@]} -gt 0 ]; then
  echo "clang-tidy: ${#compiled[@]} files"
  printf '%s\n' "${compiled[@]}" |
    xargs -P "$(nproc)" -n 4 clang-tidy-14 -p build/tidy --quiet "${analyzer[@]}" 2>/dev/null || failed=1
fi
[ $failed -eq 0 ] && echo "check: ok"
exit $failed
