#!/usr/bin/env bash
# Runs a command under another kernel, in a virtual machine: test/vm/run.sh, with its options.
#   scripts/vm.sh [--kernel bookworm|backports|DIR] -- COMMAND...
exec "$(dirname "$0")/../test/vm/run.sh" "$@"
