"""Workers that use the Python package, with Slipstream's servers."""
import importlib.util
import pathlib
import sys

from contender_process import ContenderProcess
from slipstream_contender import SlipstreamContender

PEERS = pathlib.Path(__file__).absolute().parents[1] / "peers"
PACKAGE = "worker/python/slipstream"


def package_environment(build, directory):
    """Returns the environment of programs that import the build's package. Its modules and the extension,
    which Bazel puts elsewhere, come to lie in one folder in the directory."""
    folder = directory / "package" / "slipstream"
    if not folder.exists():
        folder.mkdir(parents=True)
        for path in (build.root / PACKAGE).absolute().glob("*.py"):
            (folder / path.name).symlink_to(path)
        (folder / "_core.so").symlink_to(build.program(f"{PACKAGE}/_core.so"))
    return {"PYTHONPATH": str(folder.parent)}


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
        return ContenderProcess(
            f"python-{worker}", [sys.executable, PEERS / "python_worker.py",
                                 self.cluster.coordinator, worker, self.setting.bytes,
                                 self.setting.operation],
            self.directory, package_environment(self.build, self.directory))
