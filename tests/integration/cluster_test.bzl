"""cluster_test: a Python test that starts the programs as processes."""

load("//tests/support:python_test.bzl", "python_test")

def cluster_test(name, data = [], tags = []):
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
        # Each starts several processes and measures their interplay.
        tags = tags + ["exclusive"],
    )
