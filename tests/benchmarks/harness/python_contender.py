"""Workers that use the Python package, with Slipstream's servers."""
import importlib.util
import os
import pathlib
import sys

from contender_process import ContenderProcess
from slipstream_contender import SlipstreamContender

ROOT = pathlib.Path(__file__).absolute().parents[3]


class PythonContender(SlipstreamContender):
    """The package over one transport."""

    def __init__(self, transport, setting, directory):
        super().__init__(transport, setting, directory)
        self.name = f"python-{transport}"
        self.limit = f"slipstream-{transport}"

    def missing(self):
        if importlib.util.find_spec("numpy") is None:
            return "python3-numpy is not installed"
        return super().missing()

    def run_yaml(self):
        text = super().run_yaml()
        text = text.replace("model: {preset: mlp}", "model: {from: workers}")
        text = text.replace("data: {format: synthetic}\n", "").replace("evaluation: {every_epochs: 0}\n", "")
        return text.replace("batch_size: 1, epochs: 1", "batch_size: 1, work: own")

    def start_worker(self, worker):
        """Starts the worker, with the package where Bazel has put its extension."""
        built = pathlib.Path(self.build.program("worker/python/slipstream/_core.so")).absolute()
        package = self.directory / "package"
        if not package.exists():
            package.mkdir()
            folder = package / "slipstream"
            folder.mkdir()
            for path in (ROOT / "worker/python/slipstream").glob("*.py"):
                (folder / path.name).symlink_to(path)
            (folder / "_core.so").symlink_to(built)
        peers = ROOT / "tests" / "benchmarks" / "peers"
        environment = {**os.environ, "PYTHONPATH": f"{package}:{peers}"}
        return ContenderProcess(
            f"python-{worker}", [sys.executable, peers / "python_worker.py",
                                 self.cluster.coordinator, worker, self.setting.bytes],
            self.directory, environment)
