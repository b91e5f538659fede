"""Says whether the CUDA toolkit of this machine is whole: the repository rule in common/bazel/cuda.bzl
decides, so that tests are skipped exactly where a build would fail."""
import functools
import re
import subprocess


@functools.cache
def reason_against():
    """Returns why nothing can be built with the toolkit, or an empty text if something can."""
    query = subprocess.run(["bazel", "query", "--noshow_progress", "@cuda//:headers"], check=False,
                           capture_output=True, text=True)
    if query.returncode == 0:
        return ""
    reason = re.search(r"^Error in fail: (.*)$", query.stderr, re.M)
    return reason[1] if reason else query.stderr
