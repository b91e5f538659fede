#!/usr/bin/env python3
"""Runs clang-tidy and clang's own warnings, those of thread safety among them, over the programs' and
libraries' sources, two at a time; prints what they find. Tests are left to the compilers' warnings:
they would double the time.

Usage, in the repository root:  tests/checks/clang_tidy.py [FILE.cc ...]      (default: all)

Without the CUDA toolkit what includes its headers is left out.

A file whose own text, included headers, settings and clang-tidy are as in an earlier run that found
nothing is not looked at again. The generated headers must have been built.
"""
import concurrent.futures
import functools
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tidy

PARALLEL = 2
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") \
    / "slipstream-clang-tidy"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wno-missing-field-initializers",
            "-Wthread-safety", "-Wreserved-identifier", "-Wno-unknown-warning-option"]
running = set()  # The clang-tidy processes.
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)


CUDA_HEADERS = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "include"


def sources():
    paths = [path.relative_to(ROOT) for path in tidy.files(ROOT) if path.suffix == ".cc"]
    names = [path.as_posix() for path in paths if path.parts[0] != "tests"]
    return [name for name in names if CUDA_HEADERS.is_dir() or not needs_cuda(name)]


def needs_cuda(path):
    return path.startswith("worker/compute/cuda/") and "no_cuda" not in path


@functools.cache
def compiler_flags():
    defines = subprocess.run(["pkg-config", "--cflags-only-other", "spdlog"], check=True,
                             capture_output=True, text=True).stdout.split()
    return ["-std=c++20", *WARNINGS, "-I.", "-Ibazel-bin", *defines]


def command(path):
    cuda = ["-isystem", str(CUDA_HEADERS)] if needs_cuda(path) else []
    return ["clang-tidy", "--quiet", path, "--", *compiler_flags(), *cuda]


@functools.cache
def environment_key():
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    return version + pathlib.Path(".clang-tidy").read_bytes() + " ".join(compiler_flags()).encode()


def own_files(path):
    """The file and all of the project's headers it includes; for a generated one, its .proto."""
    seen, waiting = set(), [path]
    while waiting:
        name = waiting.pop()
        name = re.sub(r"\.(grpc\.)?pb\.h$", ".proto", name)
        if name in seen or not pathlib.Path(name).is_file():
            continue
        seen.add(name)
        waiting += INCLUDE.findall(pathlib.Path(name).read_text(encoding="utf-8"))
    return sorted(seen)


def cache_entry(path):
    digest = hashlib.sha256(environment_key())
    for name in own_files(path):
        digest.update(name.encode() + b"\0" + pathlib.Path(name).read_bytes() + b"\0")
    return CACHE / digest.hexdigest()


def check(path):
    """What clang-tidy finds in the file; empty if nothing, now or in an earlier run."""
    entry = cache_entry(path)
    if entry.exists():
        return ""
    process = subprocess.Popen(command(path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.add(process)
    output, errors = process.communicate()
    running.discard(process)
    if process.returncode == 0:
        CACHE.mkdir(parents=True, exist_ok=True)
        entry.touch()
        return ""
    return output or errors or f"clang-tidy ended with {process.returncode}"


def stop(*_):
    for process in list(running):
        process.kill()
    os._exit(130)  # Without waiting for the threads that wait for those.


def main():
    paths = sys.argv[1:] or sources()
    failed = []
    signal.signal(signal.SIGINT, stop)
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for path, found in zip(paths, pool.map(check, paths)):
            if found:
                failed.append(path)
                print(f"{path}:\n{found}", flush=True)
    print(f"clang-tidy: {len(paths)} files, {len(failed)} with findings")
    if failed:
        print("again: tests/checks/clang_tidy.py " + " ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
