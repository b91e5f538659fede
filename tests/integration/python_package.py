"""Starts programs that use the Python package, as workers of a run."""
import os
import pathlib
import sys

import cluster

PACKAGE = pathlib.Path("worker/python").absolute()
EXAMPLES = pathlib.Path("deploy/examples/python").absolute()


def use_package(*folders):
    """Lets this process and those that it starts import the package, and what is in the folders."""
    paths = [str(PACKAGE), *map(str, folders)]
    os.environ["PYTHONPATH"] = ":".join(paths)
    sys.path[:0] = paths


def run(config, program, run_dir, settings=None):
    """Runs `psctl run config -- python3 program` to its end. Returns the summary, and what each
    worker printed."""
    summary = cluster.run(config, settings, run_dir=run_dir,
                          extra=["--", sys.executable, str(program)])
    logs = sorted((pathlib.Path(run_dir) / "logs").glob("worker-*.log"))
    return summary, [path.read_text() for path in logs]
