"""What Python tests need to start programs: where they are, where to write, and how to wait.

Programs and data are found below the current directory, as Bazel lays out those of a test, or below
bazel-bin: by hand, tests are run from the root of the repository.
"""
import os
import pathlib
import tempfile
import time

# Generous: only broken code takes so long.
DEADLINE_S = 120


def program(path):
    for root in (pathlib.Path.cwd(), pathlib.Path.cwd() / "bazel-bin"):
        if (root / path).exists():
            return str(root / path)
    raise FileNotFoundError(f"{path} is built neither here nor in bazel-bin")


def scratch():
    """A directory for one test; in Bazel's own if it runs the test."""
    return tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))


def wait_until(condition, what, timeout=DEADLINE_S):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain: {what}")
        time.sleep(0.05)
