#!/usr/bin/env bash
# Compares a training step on one thread with PyTorch's, net by net.
#
#   compute.sh [TORCH_TRAIN [ROUNDS [SECONDS]]]
#
# TORCH_TRAIN is a script that is called with a net (mlp, lenet, cifar), threads and seconds and
# prints images_per_s=N; by default ../shared/reference/transport/torch_train.py beside the
# repository. Without it, or without PyTorch, only our own figures are printed. PyTorch runs as
# installed. If the processor has AVX-512, PyTorch also runs with OpenBLAS told to use it, since old
# versions take such a processor for a Haswell. Ours computes in fp32 and, where the processor can,
# again in bf16; PyTorch computes in fp32. The programs take turns, and the table holds medians, so
# that other load affects all of them alike.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

torch_train=${1:-../shared/reference/transport/torch_train.py}
rounds=${2:-5}
seconds=${3:-2}
python=${PYTHON:-/usr/bin/python3}
[[ -x "$python" ]] || python=python3
read -ra bazel <<<"${BAZEL:-bazel}" # The variable may include options.

"${bazel[@]}" build //tests/benchmarks:compute_benchmark
bin=$("${bazel[@]}" info bazel-bin)
ours=$bin/tests/benchmarks/compute_benchmark

has_torch=no
if [[ -f "$torch_train" ]] && "$python" -c 'import torch' 2>/dev/null; then has_torch=yes; fi

# has_instructions NAME: succeeds if the processor has these instructions.
has_instructions() { grep -q "$1" /proc/cpuinfo; }

# Prints the rate. Fails if nothing was measured, as well as after a program that failed.
rate() { sed -n 's/.*images_per_s=\([0-9]*\).*/\1/p' | grep .; }
median() { sort -n | awk '{v[NR] = $1} END {print NR ? v[int((NR + 1) / 2)] : 0}'; }

results=$(mktemp -d)
trap 'rm -r "$results"' EXIT

measure() { # our name, PyTorch script's name, batch, our precision
  local ours_rate installed_rate tuned_rate
  rm -f "$results/$1".*
  for _ in $(seq "$rounds"); do
    "$ours" "$1" "$3" "$seconds" "$4" | rate >>"$results/$1.ours"
    if [[ $has_torch == no ]]; then continue; fi
    "$python" "$torch_train" "$2" 1 "$seconds" | rate >>"$results/$1.installed"
    if ! has_instructions avx512f; then continue; fi
    OPENBLAS_CORETYPE=SkylakeX OMP_PROC_BIND=true "$python" "$torch_train" "$2" 1 "$seconds" |
      rate >>"$results/$1.tuned"
  done
  touch "$results/$1.installed" "$results/$1.tuned"
  ours_rate=$(median <"$results/$1.ours")
  installed_rate=$(median <"$results/$1.installed")
  tuned_rate=$(median <"$results/$1.tuned")
  awk -v net="$1" -v precision="$4" -v batch="$3" -v ours="$ours_rate" \
    -v installed="$installed_rate" -v tuned="$tuned_rate" '
    function ratio(theirs) { return theirs > 0 ? sprintf("%.2f", ours / theirs) : "-" }
    BEGIN {
      printf "%-12s %-9s %5d %10d %10d %10d %12s %8s\n", net, precision, batch, ours, installed, tuned,
        ratio(installed), ratio(tuned)
    }'
}

printf '%-12s %-9s %5s %10s %10s %10s %12s %8s\n' net ours batch images/s torch 'torch+' ratio 'ratio+'
for precision in fastest bf16; do
  if [[ $precision == bf16 ]] && ! has_instructions avx512_bf16; then continue; fi
  measure mlp mlp 64 $precision
  measure lenet5 lenet 64 $precision
  measure cifar_quick cifar 128 $precision
done
