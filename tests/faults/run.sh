#!/usr/bin/env bash
# Builds the programs and runs real clusters through faults. See --help.
set -euo pipefail
export PYTHONUNBUFFERED=1

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# Debian's own Python, as all tests use it.
python=${PYTHON:-/usr/bin/python3}
[[ -x $python ]] || python=python3
for argument in "$@"; do
  case "$argument" in
    --help | -h) exec "$python" tests/faults/harness/main.py --help ;;
  esac
done
# shellcheck disable=SC2086 # BAZEL_OPTIONS may hold several.
${BAZEL:-bazel} build --noshow_progress ${BAZEL_OPTIONS:-} //server:ps_server //worker:ps_worker \
  //deploy/psctl
exec "$python" tests/faults/harness/main.py "$@"
