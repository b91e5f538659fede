#!/usr/bin/env bash
# Runs fuzzers for longer than the tests replay their corpora. See --help.
set -euo pipefail

usage() {
  cat <<'END'
Usage: tests/fuzz/run.sh NAME... [--seconds N] [--input FILE]
       tests/fuzz/run.sh --all [--seconds N]
       tests/fuzz/run.sh --list

Builds the fuzzers (libFuzzer of clang, with AddressSanitizer and UBSan) and runs each of those named
for a while, on one processor, from its folder in tests/fuzz/corpus on. What it finds on its way is kept
under fuzz-results/NAME and taken up again by the next run.

Where an input ends the parser, the fuzzer stops, the input is in fuzz-results/NAME-crash-HASH, and the
last line is the command that repeats it. Once it is mended, the file belongs into tests/fuzz/corpus/NAME.

  --seconds N    how long each fuzzer runs (60)
  --input FILE   runs that input alone, once
  --list         prints the names
END
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
names=()
seconds=60
input=
while (($# > 0)); do
  case "$1" in
    --help | -h) usage && exit 0 ;;
    --list) ls "$root/tests/fuzz/corpus" && exit 0 ;;
    --all) mapfile -t names < <(ls "$root/tests/fuzz/corpus") ;;
    --seconds) seconds=${2:?--seconds needs a number} && shift ;;
    --input) input=$(realpath "${2:?--input needs a file}") && shift ;;
    -*) echo "run.sh: unknown option $1; see --help" >&2 && exit 2 ;;
    *) names+=("$1") ;;
  esac
  shift
done
if ((${#names[@]} == 0)); then usage >&2 && exit 2; fi
for name in "${names[@]}"; do
  if [[ ! -d $root/tests/fuzz/corpus/$name ]]; then
    echo "run.sh: there is no fuzzer $name; see --list" >&2
    exit 2
  fi
done

cd "$root"
# shellcheck disable=SC2086 # BAZEL_OPTIONS may hold several.
${BAZEL:-bazel} build --config=fuzz ${BAZEL_OPTIONS:-} //tests/fuzz:fuzzer
fuzzer=$(${BAZEL:-bazel} info --config=fuzz bazel-bin 2>/dev/null)/tests/fuzz/fuzzer

TMPDIR=$(mktemp -d)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT
export ASAN_OPTIONS=${ASAN_OPTIONS:-allocator_may_return_null=1}
results=$root/fuzz-results
failed=0
for name in "${names[@]}"; do
  export SLIPSTREAM_FUZZER=$name
  if [[ -n $input ]]; then
    "$fuzzer" "$input" || failed=1
    continue
  fi
  mkdir -p "$results/$name"
  echo "=== $name"
  if ! "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=8192 \
    -print_final_stats=1 -verbosity=1 -reload=0 -artifact_prefix="$results/$name-" \
    "$results/$name" "tests/fuzz/corpus/$name" >"$results/$name.log" 2>&1; then
    failed=1
    tail -n 60 "$results/$name.log"
    found=$(sed -n 's/.*Test unit written to //p' "$results/$name.log" | tail -n 1)
    echo "$name: an input ended the parser; again: tests/fuzz/run.sh $name --input $found"
    continue
  fi
  sed -n 's/^stat:://p; /^#.*DONE/p' "$results/$name.log"
done
exit "$failed"
