"""cluster_test: a Python test that starts the programs as processes."""

def cluster_test(name, data = []):
    native.sh_test(
        name = name,
        size = "large",
        srcs = ["run_python_test.sh"],
        args = ["$(location %s.py)" % name],
        data = data + [
            name + ".py",
            "cluster.py",
            "small_run.yaml",
            "//deploy/psctl",
            "//server:ps_server",
            "//worker:ps_worker",
        ],
        # Each starts several processes and measures their interplay.
        tags = ["exclusive"],
    )
