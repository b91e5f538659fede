"""Helpers with which Python tests start programs: where programs and data are, where to write, and
how to wait.

A test uses the build in the current directory: Bazel lays out a test's programs and data there. By
hand, tests are run from the root of the repository.
"""
import os
import pathlib
import tempfile
import time

# The deadline is generous: only broken code takes that long.
DEADLINE_S = 120


class Build:
    """The programs and data of one build. They lie below `root` or below the bazel-bin in it."""

    def __init__(self, root):
        self.root = pathlib.Path(root)

    def program(self, path):
        """Returns the absolute path, so that the program can be started from any directory."""
        for folder in (self.root, self.root / "bazel-bin"):
            if (folder / path).exists():
                return str((folder / path).absolute())
        raise FileNotFoundError(f"{path} is built neither in {self.root.absolute()} nor in the "
                                "bazel-bin there")


OWN_BUILD = Build(".")


def program(path):
    return OWN_BUILD.program(path)


def scratch():
    """Makes a directory for one test, inside Bazel's test directory if Bazel runs the test."""
    return tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))


def wait_until(condition, what, timeout=DEADLINE_S):
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout} s in vain: {what}")
        time.sleep(0.05)
