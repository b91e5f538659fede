#!/usr/bin/env bash
# Builds with optimisation and measures Slipstream beside its peers. See --help.
set -euo pipefail

# Options of Bazel's build in BAZEL_OPTIONS; --json is relative to where this was called.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Debian's own, which sees Debian's PyTorch.
python=${PYTHON:-/usr/bin/python3}
[[ -x $python ]] || python=python3
harness="$root/tests/benchmarks/harness/main.py"

setup=no
for argument in "$@"; do
  case "$argument" in
    --help | -h) exec "$python" "$harness" --help ;;
    --setup) setup=yes ;;
  esac
done
if [[ $setup == yes ]]; then "$root/deploy/setup.sh" --dev --benchmarks; fi

targets=$("$python" "$harness" --targets "$@")
# shellcheck disable=SC2086 # Each line is a target, and BAZEL_OPTIONS may hold several.
(cd "$root" && ${BAZEL:-bazel} build -c opt ${BAZEL_OPTIONS:-} $targets)
exec "$python" "$harness" "$@"
