#!/usr/bin/env python3
"""Runs clang-tidy and clang's own warnings, including thread safety, over the sources of programs
and libraries, two at a time. Prints what they find. Tests are left to the compilers' warnings.

Usage, in the repository root:  tests/checks/clang_tidy.py [--each] [FILE.cc ...]   (default: all)

Most of the time goes into the headers that a source includes, so many sources are checked as one.
If something is found, or if the sources do not compile together, each half of them is checked as
one, and so on down to single sources. Where few have changed, and with --each, they are checked by
themselves: that also finds what clang reports for its main file alone, such as unused functions, and
headers that a source forgot to include.

Without a whole CUDA toolkit, sources that include its headers are left out.

A file is not checked again if its text, its included headers, the settings and clang-tidy are the
same as in an earlier run that found nothing. The generated headers must have been built.
"""
import argparse
import concurrent.futures
import functools
import hashlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import tidy
from checks import cuda_toolkit, together

PARALLEL = 2
GROUP_LINES_MAX = 6000  # Small enough to keep both processors busy to the end.
ALONE_MAX = 20  # Up to so many changed sources are checked by themselves.
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") \
    / "slipstream-clang-tidy"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wno-missing-field-initializers",
            "-Wthread-safety", "-Wreserved-identifier", "-Wno-unknown-warning-option"]
running = set()  # The clang-tidy processes under way.
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
CUDA_HEADERS = pathlib.Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda") / "include"


def sources():
    paths = [path.relative_to(ROOT) for path in tidy.files(ROOT) if path.suffix == ".cc"]
    names = [path.as_posix() for path in paths if path.parts[0] != "tests"]
    return [name for name in names if not needs_cuda(name) or not cuda_toolkit.reason_against()]


def needs_cuda(path):
    return path.startswith("worker/compute/cuda/") and "no_cuda" not in path


@functools.cache
def compiler_flags():
    defines = subprocess.run(["pkg-config", "--cflags-only-other", "spdlog"], check=True,
                             capture_output=True, text=True).stdout.split()
    includes = subprocess.run(["pkg-config", "--cflags-only-I", "python3"], check=True,
                              capture_output=True, text=True).stdout.replace("-I", "-isystem")
    return ["-std=c++20", *WARNINGS, "-I.", "-Ibazel-bin", *defines, *includes.split()]


@functools.cache
def environment_key():
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    return version + pathlib.Path(".clang-tidy").read_bytes() + " ".join(compiler_flags()).encode()


@functools.cache
def text_of(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def own_files(path):
    """Returns the file and all headers of the project that it includes; a generated header is
    replaced by its .proto."""
    seen, waiting = set(), [path]
    while waiting:
        name = waiting.pop()
        name = re.sub(r"\.(grpc\.)?pb\.h$", ".proto", name)
        if name in seen or not pathlib.Path(name).is_file():
            continue
        seen.add(name)
        waiting += INCLUDE.findall(text_of(name))
    return sorted(seen)


def cache_entry(path, alone):
    """Returns the path of a file that exists if nothing was found in the source: by itself if
    `alone`, else by itself or within its group."""
    digest = hashlib.sha256(environment_key() + (b"alone" if alone else b""))
    for name in own_files(path):
        digest.update(name.encode() + b"\0" + text_of(name).encode() + b"\0")
    return CACHE / digest.hexdigest()


def groups(paths):
    """Divides the sources into lists that compile as one: each from one part of the project, with
    the same flags."""
    return together.groups({path: text_of(path) for path in paths}, GROUP_LINES_MAX,
                           lambda path: (path.split("/")[0], needs_cuda(path)))


def run_clang_tidy(file, with_cuda, *options):
    """Returns what clang-tidy finds in a file; empty if nothing."""
    cuda = ["-isystem", str(CUDA_HEADERS)] if with_cuda else []
    process = subprocess.Popen(
        ["clang-tidy", "--quiet", "--config-file=.clang-tidy", *options, file, "--",
         *compiler_flags(), *cuda], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    running.add(process)
    output, errors = process.communicate()
    running.discard(process)
    if process.returncode == 0:
        return ""
    return output or errors or f"clang-tidy ended with {process.returncode}"


def is_clean_as_one(paths):
    with tempfile.NamedTemporaryFile("w", suffix=".cc", encoding="utf-8") as file:
        file.writelines(together.headers_first(map(text_of, paths)))
        file.writelines(f'#include "{path}"\n' for path in paths)
        file.flush()
        return not run_clang_tidy(file.name, needs_cuda(paths[0]),
                                  "--checks=-bugprone-suspicious-include")


def check(paths, alone):
    """Returns what is found in the sources of a group, by path."""
    if len(paths) > 1 and not is_clean_as_one(paths):
        middle = len(paths) // 2
        return check(paths[:middle], alone) | check(paths[middle:], alone)
    found = dict.fromkeys(paths, "")
    if len(paths) == 1:
        found[paths[0]] = run_clang_tidy(paths[0], needs_cuda(paths[0]))
    CACHE.mkdir(parents=True, exist_ok=True)
    for path in paths:
        if not found[path]:
            cache_entry(path, alone).touch()
    return found


def stop(*_):
    for process in list(running):
        process.kill()
    os._exit(130)  # Exit without waiting for the threads of these processes.


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--each", action="store_true", help="check each source by itself")
    parser.add_argument("files", nargs="*", metavar="FILE.cc", help="default: all")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, stop)
    paths = options.files or sources()
    changed = [path for path in paths if not cache_entry(path, options.each).exists()]
    is_each = options.each or len(changed) <= ALONE_MAX
    work = [[path] for path in changed] if is_each else groups(changed)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(PARALLEL) as pool:
        for found in pool.map(lambda group: check(group, options.each), work):
            for path in filter(found.get, found):
                failed.append(path)
                print(f"{path}:\n{found[path]}", flush=True)
    print(f"clang-tidy: {len(paths)} files, {len(changed)} of them new or changed, "
          f"{len(failed)} with findings")
    if failed:
        print("again: tests/checks/clang_tidy.py " + " ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
