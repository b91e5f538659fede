#!/usr/bin/env bash
# Installs the Debian packages that Slipstream is built from. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/setup.sh [--dev] [--benchmarks]

Installs, with apt, what building and running Slipstream needs; with --dev also what its tests and
checks need. Packages that are installed already are left alone; where none is missing nothing is
run and no rights are needed. Works as root or through sudo, on Debian 12 and Ubuntu 24.04.

  --dev         also clang, clang-tidy, clang-format, the sanitizers' libraries, Google Benchmark,
                shellcheck, pyflakes, iproute2, nftables, e2fsprogs, zsh and fish, and Python's
                NumPy, protobuf, gRPC, YAML and JSON Schema
  --benchmarks  also what tests/benchmarks/run.sh compares with: PyTorch, OpenMPI
  --help        this text
END
}

die() {
  echo "setup: $*" >&2
  exit 1
}

build_packages=(
  bazel-bootstrap g++ pkg-config git ca-certificates python3 xz-utils
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc
  libabsl-dev libspdlog-dev libfmt-dev libyaml-cpp-dev libcli11-dev nlohmann-json3-dev
  libdnnl-dev libgloo-dev zlib1g-dev libxxhash-dev libssl-dev libutfcpp-dev
  libgtest-dev libgmock-dev
  python3-dev pybind11-dev patchelf
)
dev_packages=(
  clang lld clang-tidy clang-format libclang-rt-dev libbenchmark-dev shellcheck pyflakes3
  iproute2 nftables e2fsprogs zsh fish openssl
  python3-numpy python3-protobuf python3-grpcio python3-jsonschema python3-yaml python3-torch
)
benchmark_packages=(libopenblas0-pthread libopenmpi-dev openmpi-bin)

packages=("${build_packages[@]}")
purpose="to build and run Slipstream"
for argument in "$@"; do
  case "$argument" in
    --dev)
      packages+=("${dev_packages[@]}")
      purpose="to build and test Slipstream"
      ;;
    --benchmarks)
      packages+=("${benchmark_packages[@]}")
      purpose="to measure Slipstream beside its peers"
      ;;
    --help | -h)
      usage
      exit 0
      ;;
    *) die "unknown argument '$argument'; see deploy/setup.sh --help" ;;
  esac
done

for tool in dpkg-query apt-get; do
  command -v "$tool" >/dev/null ||
    die "$tool not found: this script knows Debian and Ubuntu only; elsewhere install: ${packages[*]}"
done

# dpkg-query fails for a package it has never heard of, and that is an answer here.
installed=" $(dpkg-query --show --showformat='${db:Status-Status}=${Package} ' \
  "${packages[@]}" 2>/dev/null || true)"
missing=()
for package in "${packages[@]}"; do
  [[ "$installed" == *" installed=$package "* ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: all ${#packages[@]} packages needed $purpose are installed; nothing to do"
  exit 0
fi

as_root=()
if [[ $EUID -ne 0 ]]; then
  command -v sudo >/dev/null ||
    die "not root and no sudo; as root run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

log=$(mktemp "${TMPDIR:-/tmp}/slipstream-setup.XXXXXX")

# apt_get ARGUMENTS: fails after saying why. Another apt may be running at boot, so it waits for its
# lock instead.
apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" >"$log" 2>&1 </dev/null && return
  local reason
  reason=$(grep -m 1 '^E:' "$log" || tail -n 1 "$log")
  echo "setup: apt-get $1 failed: ${reason:-no reason given}" >&2
  return 1
}

echo "setup: installing ${#missing[@]} packages needed $purpose: ${missing[*]}"
# One of several sources may be gone although nothing is needed from it, and the lists may be fresh enough.
apt_get update || echo "setup: going on with the lists of packages that there are" >&2
apt_get install --no-install-recommends "${missing[@]}" || die "all that apt-get said: $log"
rm -f "$log"
echo "setup: done"
