#!/usr/bin/env bash
# Tests and measures a bundle on a machine with a GPU. See --help.
set -euo pipefail
export PYTHONUNBUFFERED=1  # Output is visible at once, even of a run that is cut off.
exec "${PYTHON:-python3}" "$(dirname "${BASH_SOURCE[0]}")/harness/main.py" "$@"
