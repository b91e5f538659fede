#!/usr/bin/env bash
# Builds with optimisation and measures Slipstream beside its peers. See --help.
set -euo pipefail

# BAZEL_OPTIONS holds options for Bazel's build. Paths that are given as arguments are relative to
# the directory in which this script is called.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# Debian's own Python can import Debian's PyTorch.
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

# Each line is a checkout, a tab, and the targets to build in it.
plan=$("$python" "$harness" --targets "$@")
while IFS=$'\t' read -r checkout targets; do
  # shellcheck disable=SC2086 # There are several targets, and BAZEL_OPTIONS may hold several, too.
  if ! (cd "$checkout" && ${BAZEL:-bazel} build -c opt ${BAZEL_OPTIONS:-} $targets </dev/null); then
    echo "run.sh: $checkout does not build, so nothing was measured. Bazel says above what is" \
      "wrong: mend it there, or leave out the part that needs it (--only PART)." >&2
    exit 1
  fi
done <<<"$plan"
exec "$python" "$harness" "$@"
