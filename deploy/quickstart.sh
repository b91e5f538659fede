#!/usr/bin/env bash
# Builds the programs and trains the example run on this machine. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/quickstart.sh [--no-setup] [ARGUMENTS]

Installs what is missing (deploy/setup.sh), builds ps_server, ps_worker and psctl, and runs
deploy/examples/quickstart.yaml: servers and workers as processes of this machine, on data that the
workers generate. ARGUMENTS are passed on to `psctl run`.

  --no-setup   do not look for missing packages
  --help       this text
END
}

setup=yes
while [[ $# -gt 0 ]]; do
  case "$1" in
    --no-setup) setup=no ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) break ;;
  esac
  shift
done

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Bazel needs a home directory, which service accounts and containers may lack.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"

# Stdout is psctl's: `-o json` prints one object there.
if [[ $setup == yes ]]; then deploy/setup.sh >&2; fi
deploy/build.py //server:ps_server //worker:ps_worker //deploy/psctl
exec bazel-bin/deploy/psctl/psctl run deploy/examples/quickstart.yaml "$@"
