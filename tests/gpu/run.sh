#!/usr/bin/env bash
# Tests and measures a bundle on a machine with a GPU. See --help.
set -euo pipefail
exec "${PYTHON:-python3}" "$(dirname "${BASH_SOURCE[0]}")/harness/main.py" "$@"
