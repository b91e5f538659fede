#!/usr/bin/env bash
# Runs every check and test of the project and ends with their count. See --help.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Bazel needs a home directory, which service accounts and containers may lack. The sources are
# UTF-8, whatever the locale of the machine.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
export LC_ALL=C.UTF-8

setup=yes
arguments=()
for argument in "$@"; do
  case "$argument" in
    --no-setup) setup=no ;;
    --help | -h) setup=no arguments+=(--help) ;;
    *) arguments+=("$argument") ;;
  esac
done

if [[ $setup == yes ]]; then deploy/setup.sh --dev; fi
exec python3 tests/checks/run.py --setup-seconds "$SECONDS" "${arguments[@]}"
