#!/usr/bin/env python3
"""Says whether the CUDA toolkit of this machine is whole: the repository rule in common/bazel/cuda.bzl
decides, so that tests are skipped exactly where a build would fail.

Usage, in the repository:  tests/checks/cuda_toolkit.py

Exits with 0 if the toolkit is whole, else prints what is wrong and exits with 1."""
import functools
import re
import subprocess
import sys


@functools.cache
def reason_against():
    """Returns why nothing can be built with the toolkit, or an empty text if something can. Raises
    CalledProcessError if Bazel fails for another reason."""
    query = subprocess.run(["bazel", "query", "--noshow_progress", "@cuda//:headers"], check=False,
                           capture_output=True, text=True)
    if query.returncode == 0:
        return ""
    reason = re.search(r"^Error in fail: (.*)$", query.stderr, re.M)
    if not reason:
        sys.stderr.write(query.stderr)
        query.check_returncode()
    return reason[1]


def main():
    reason = reason_against()
    print(reason, end="\n" if reason else "")
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
