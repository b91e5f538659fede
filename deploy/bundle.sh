#!/usr/bin/env bash
# Builds the programs so that they run on machines where nothing of this is installed. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: deploy/bundle.sh [--tests] [--no-setup] DIRECTORY

Writes DIRECTORY/slipstream-VERSION.tar.xz: ps_server, ps_worker, ps_evaluate, ps_lab and psctl, for any
x86-64 Linux with glibc 2.36 or newer (Debian 12, Ubuntu 24.04). They are linked statically; what
Debian has no archive of travels in lib/, and what that needs. Where the CUDA toolkit is installed
($CUDA_HOME or /usr/local/cuda), ps_worker also computes on GPUs; the machine that it runs on then
needs the driver, cuBLAS and cuDNN, and NCCL for several GPUs of one worker, found in
/usr/local/cuda, LD_LIBRARY_PATH or Python's packages `nvidia`. licenses/ holds the terms of
what is Debian's in it (CUDA's runtime has NVIDIA's); COMMIT says what it was built from.

  --tests      also what tests/gpu/run.sh runs
  --no-setup   do not look for missing packages
  --help       this text
END
}

die() {
  echo "bundle: $*" >&2
  exit 1
}

setup=yes
with_tests=no
out=
for argument in "$@"; do
  case "$argument" in
    --tests) with_tests=yes ;;
    --no-setup) setup=no ;;
    --help | -h)
      usage
      exit 0
      ;;
    -*) die "unknown argument '$argument'; see deploy/bundle.sh --help" ;;
    *)
      [[ -z "$out" ]] || die "one directory, not '$out' and '$argument'"
      out=$argument
      ;;
  esac
done
[[ -n "$out" ]] || die "where to? see deploy/bundle.sh --help"
mkdir -p "$out"
out=$(cd "$out" && pwd)

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# Bazel needs a home directory, which service accounts and containers may lack.
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"
if [[ $setup == yes ]]; then deploy/setup.sh; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

targets=(//server:ps_server //worker:ps_worker //worker:ps_evaluate //deploy/lab:ps_lab //deploy/psctl)
tests=()
options=()
if reason=$(tests/checks/cuda_toolkit.py); then
  options+=(--config=cuda)
  if [[ $with_tests == yes ]]; then
    tests=(//tests/gpu:kernel_parity_test //tests/gpu:plan_parity_test
      //tests/gpu:large_parity_test //tests/gpu:group_parity_test
      //tests/benchmarks:compute_benchmark)
  fi
else
  [[ "$reason" == "there is no CUDA toolkit"* ]] || die "${reason:-tests/checks/cuda_toolkit.py failed}"
  echo "bundle: $reason; ps_worker will compute on processors only" >&2
  [[ $with_tests == no ]] || die "--tests needs the toolkit"
fi

# A folder that holds archives only: the linker takes what it finds in the first folder that has it.
# Not of libstdc++, which travels for the libraries' sake anyway: a program had better not have two.
libraries=$(dirname "$(gcc -print-file-name=libgrpc++.a)")
archives=$work/archives
mkdir "$archives"
static=(grpc++ protobuf yaml-cpp zlib libxxhash libcrypto libssl)
read -ra static_flags <<<"$(pkg-config --static --libs "${static[@]}" | tr -s ' ')"
for flag in "${static_flags[@]}" -lgrpc++_reflection -labsl_synchronization; do
  case "$flag" in
    -lm | -ldl | -lrt | -lpthread | -lc) continue ;;
    -l*) archive=$(gcc -print-file-name="lib${flag#-l}.a") ;;
    *) continue ;;
  esac
  [[ "$archive" == /* ]] || die "no archive for $flag in $libraries"
  ln -sf "$archive" "$archives/"
done
options+=("--linkopt=-L$archives" "--linkopt=-Wl,--start-group")
for flag in "${static_flags[@]}"; do options+=("--linkopt=$flag"); done
options+=("--linkopt=-Wl,--end-group" "--linkopt=-Wl,--gc-sections" --linkopt=-s
  # RPATH and not RUNPATH: libraries in lib/ find each other through it too.
  "--linkopt=-Wl,-rpath,\$ORIGIN/../lib" "--linkopt=-Wl,--disable-new-dtags"
  # The folder of archives is not part of what Bazel knows of.
  --spawn_strategy=local)

bazel build "${options[@]}" "${targets[@]}" "${tests[@]}"

version=$(bazel-bin/worker/ps_worker --version | awk '{print $2}')
name=slipstream-$version
bundle=$work/$name
mkdir -p "$bundle/bin" "$bundle/lib"
for target in "${targets[@]}" "${tests[@]}"; do
  path=${target#//}
  [[ "$path" == *:* ]] && path=${path/://} || path=$path/$(basename "$path")
  install -m 755 "bazel-bin/$path" "$bundle/bin/"
done

# Copies the libraries that the programs need and that glibc does not bring, and those that these need.
library_file() { gcc -print-file-name="$1"; }
needed_by() { objdump -p "$@" | awk '/NEEDED/ {print $2}' | sort -u; }
copy_needed() {
  local library
  for library in $(needed_by "$@"); do
    case "$library" in
      libc.so.* | libm.so.* | ld-linux*) continue ;;
    esac
    [[ ! -e "$bundle/lib/$library" ]] || continue
    cp -L "$(library_file "$library")" "$bundle/lib/"
    strip --strip-unneeded "$bundle/lib/$library"
    copy_needed "$bundle/lib/$library"
  done
}
copy_needed "$bundle"/bin/*

# The copyright files of the Debian packages that FILES came with: each asks to be passed on.
mkdir "$bundle/licenses"
copy_licenses() {
  local file package copyright
  for file in "$@"; do
    file=$(readlink -f "$file")
    # dpkg knows a file by the path it was packed under, which may lack the /usr it lies in today.
    package=$(dpkg-query --search "*${file#/usr}" 2>/dev/null | sed -n '1s/[:,].*//p') || true
    copyright=/usr/share/doc/$package/copyright
    if [[ -n "$package" && -f "$copyright" ]]; then
      install -m 644 "$copyright" "$bundle/licenses/$package"
    else
      echo "bundle: no copyright file of a package for $file" >&2
    fi
  done
}
copy_licenses "$archives"/* /usr/include/{CLI/CLI,nlohmann/json}.hpp /usr/include/{spdlog/spdlog,utf8cpp/utf8}.h \
  /usr/share/nodejs/chart.js/dist/chart.mjs  # Is in the page of ps_server.
for library in "$bundle"/lib/*; do copy_licenses "$(library_file "${library##*/}")"; done
cp LICENSE README.md "$bundle/"

mkdir "$bundle/deploy"
cp -r deploy/docs "$bundle/deploy/docs"
cp -r deploy/examples "$bundle/examples"
mkdir "$bundle/systemd"
cp deploy/systemd/*.service "$bundle/systemd/"
find "$bundle/examples" -name BUILD -delete
# Where examples/status.py looks for them.
mkdir "$bundle/proto"
cp proto/*.proto "$bundle/proto/"
{ git describe --always --dirty --abbrev=40 2>/dev/null || echo unknown; } >"$bundle/COMMIT"
tar -C "$work" -c "$name" | xz -9 -T0 >"$out/$name.tar.xz"
du -h "$out/$name.tar.xz"
