"""Slipstream itself: real servers, and workers that use the real client without computing."""
import functools
import json

import cluster
from contender import Contender
from contender_process import ContenderProcess
from programs import program

# Gradients are ones: what is learnt does not matter, and must stay finite for hours. The net and the
# data are not used, as workers propose a model of one tensor.
RUN_YAML = """
version: 1
name: benchmark
model: {{preset: mlp}}
data: {{format: synthetic}}
training: {{batch_size: 1, epochs: 1}}
consistency: {{policy: {policy}}}
optimizer: {{kind: {rule}, learning_rate: 0.000000001}}
cluster: {{servers: [{servers}], workers: {workers}, lease: 1m}}
wire: {{transport: {transport}}}
evaluation: {{every_epochs: 0}}
log: {{level: warning}}
"""


@functools.lru_cache
def settings_schema():
    return json.loads(cluster.psctl("config", "schema").stdout)["properties"]


def choices(section, key):
    """The values that run.yaml takes there; none where it does not know the key."""
    return settings_schema().get(section, {}).get("properties", {}).get(key, {}).get("enum", [])


def rule_missing(rule):
    """Why no run can have it; empty if one can."""
    return "" if rule in choices("optimizer", "kind") else f"run.yaml knows no optimizer.kind {rule}"


class SlipstreamContender(Contender):
    def __init__(self, transport, setting, directory):
        super().__init__(setting, directory)
        self.name = f"slipstream-{transport}"
        self.limit = f"raw-{transport}"
        self.transport = transport
        self.cluster = None

    def missing(self):
        if self.transport not in choices("wire", "transport"):
            return f"run.yaml knows no wire.transport {self.transport}"
        return ""

    def run_yaml(self):
        # Ports are the system's choice, and these are only names.
        servers = ", ".join(f"localhost:{7070 + shard}" for shard in range(self.setting.servers))
        return RUN_YAML.format(policy=self.setting.policy, rule=self.setting.rule, servers=servers,
                               workers=self.setting.workers,
                               transport=self.transport)

    def start(self):
        config = cluster.write_config(self.directory, self.run_yaml())
        settings = {"cluster.servers": ",".join(
            f"localhost:{7070 + shard}" for shard in range(self.setting.servers))}
        self.cluster = cluster.Cluster(config, settings, self.directory, workers=0)
        for worker in range(self.setting.workers):
            self.workers.append(ContenderProcess(
                f"driver-{worker}",
                [program("tests/benchmarks/exchange_driver"), "--coordinator",
                 self.cluster.coordinator, "--worker", worker, "--bytes", self.setting.bytes],
                self.directory))

    def stop(self):
        super().stop()
        if self.cluster is not None:
            self.cluster.stop()
