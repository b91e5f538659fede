"""Contenders that train whole nets: Slipstream as its users start it, and PyTorch's
DistributedDataParallel."""
import dataclasses
import json
import os
import pathlib
import subprocess

import cluster
from contender import Contender, Setting, Turn, name_in
from contender_process import ContenderFailed
from programs import OWN_BUILD
from torch_contenders import TorchContender

RUN_S = 600
EXAMPLES = 20_000

# Each worker has one compute thread by default. The learning rate keeps the loss finite, which is
# all that matters here. The test set is small, as it is not part of the measurement.
RUN_YAML = """
version: 1
name: benchmark
model: {{preset: {net}}}
data: {{format: synthetic, train_examples: {examples}, test_examples: 100}}
training: {{batch_size: {batch}, epochs: 100000}}
consistency: {{policy: {policy}}}
optimizer: {{kind: momentum, learning_rate: 0.001, momentum: 0.9}}
cluster: {{servers: ["localhost:7070"], workers: {workers}}}
evaluation: {{every_epochs: 0}}
"""


@dataclasses.dataclass(frozen=True)
class TrainingSetting(Setting):
    net: str = ""
    batch: int = 64


class TrainingContender(Contender):
    """A contender for which an exchange is a step of every worker, and whose amount is counted in
    examples."""

    def amount(self, count):
        return count * self.setting.workers * self.setting.batch


class SlipstreamTraining(TrainingContender):
    """Runs psctl once for each turn. The time that counts is that of training, from start to
    end."""

    def __init__(self, policy, setting, directory, build=OWN_BUILD):
        super().__init__(dataclasses.replace(setting, policy=policy), directory, build)
        self.name = name_in(build, f"slipstream-{policy}")
        self.runs = 0
        self.extra = ()  # Further arguments of `psctl run`.

    def start(self):
        setting = self.setting
        cluster.write_config(self.directory, RUN_YAML.format(
            net=setting.net, batch=setting.batch, policy=setting.policy, workers=setting.workers,
            examples=EXAMPLES))

    def psctl_environment(self):
        """Returns an environment that names this build's programs. Names in the caller's
        environment would apply to both builds."""
        return {**os.environ, "PS_SERVER_BINARY": self.build.program("server/ps_server"),
                "PS_WORKER_BINARY": self.build.program("worker/ps_worker")}

    def run(self, count):
        self.runs += 1
        steps = count * self.setting.workers
        run_directory = self.directory / f"run-{self.runs}"
        log = self.directory / "psctl.log"
        with open(log, "ab") as log_file:
            try:
                done = subprocess.run(
                    [self.build.program("deploy/psctl/psctl"), "run", self.directory / "run.yaml",
                     "-o", "json", "--run-dir", run_directory, "--set",
                     f"training.max_steps={steps}", *self.extra],
                    env=self.psctl_environment(), stdout=subprocess.PIPE, stderr=log_file,
                    timeout=RUN_S, check=True)
            except subprocess.SubprocessError as failure:
                raise ContenderFailed(f"{self.name}: {failure} (log: {log})") from None
        seconds = json.loads(done.stdout)["seconds"]
        return Turn(seconds, seconds / count)


class DdpTraining(TrainingContender, TorchContender):
    """DistributedDataParallel in two settings, as old versions of OpenBLAS take new processors for
    a Haswell."""
    script = "ddp_rank.py"

    def __init__(self, is_tuned, setting, directory):
        super().__init__(dataclasses.replace(setting, policy=""), directory)
        self.name = "torch-ddp-tuned" if is_tuned else "torch-ddp"
        self.environment = {"OPENBLAS_CORETYPE": "SkylakeX"} if is_tuned else {}

    def missing(self):
        flags = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        if self.environment and "avx512f" not in flags:
            return "this processor has no AVX-512"
        return super().missing()

    def start(self):
        setting = self.setting
        self.workers = [self.start_rank(rank, setting.workers, setting.net, setting.batch, EXAMPLES)
                        for rank in range(setting.workers)]
