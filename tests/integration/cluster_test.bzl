"""cluster_test: a Python test that starts the programs as processes."""

load("//tests/support:python_test.bzl", "python_test")

def cluster_test(name, data = [], tags = [], alone = False):
    """A test of size large, outside the sandbox, as users run the programs.

    It runs with nothing else beside it if it is `alone`: where so many processes run, or so much
    depends on who is faster, that others would be in its way."""
    python_test(
        name = name,
        size = "large",
        data = data + [
            "cluster.py",
            "small_run.yaml",
            "//deploy/psctl",
            "//server:ps_server",
            "//worker:ps_worker",
        ],
        # Each test starts several processes. Bazel runs exclusive tests outside the sandbox, too.
        tags = tags + (["exclusive"] if alone else ["cpu:2", "local"]),
    )
