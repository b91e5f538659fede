#!/usr/bin/env bash
# Builds the Python package. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/wheel.sh [--no-setup] DIRECTORY

Writes DIRECTORY/slipstream-VERSION-….whl: the package `slipstream` for the python3 of this machine,
and for others with the same version of Python, x86-64, and this machine's glibc or a newer one. It
needs nothing else there: the libraries that it uses travel in it, under names of their own, so that
they get into nobody's way. Install it with `pip install DIRECTORY/slipstream-*.whl`.

  --no-setup   do not look for missing packages
  --help       this text
END
}

die() {
  echo "wheel: $*" >&2
  exit 1
}

setup=yes
out=
for argument in "$@"; do
  case "$argument" in
    --no-setup) setup=no ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) die "unknown argument '$argument'; see deploy/wheel.sh --help" ;;
    *)
      [[ -z "$out" ]] || die "one directory, not '$out' and '$argument'"
      out=$argument
      ;;
  esac
done
[[ -n "$out" ]] || die "where to? see deploy/wheel.sh --help"
mkdir -p "$out"
out=$(cd "$out" && pwd)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Bazel needs a home directory, which service accounts and containers may lack.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
if [[ $setup == yes ]]; then deploy/setup.sh; fi
command -v patchelf >/dev/null || die "patchelf is missing; deploy/setup.sh installs it"

bazel build //worker/python:package
/usr/bin/python3 deploy/make_wheel.py --package worker/python/slipstream \
  --extension bazel-bin/worker/python/slipstream/_core.so "$out"
