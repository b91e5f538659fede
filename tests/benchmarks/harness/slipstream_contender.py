"""Slipstream itself: real servers, and workers that use the real client without computing."""
import functools
import json
import re

import cluster
from contender import Contender, name_in
from contender_process import ContenderProcess
from programs import OWN_BUILD

# Gradients are ones. The learnt values do not matter, but must stay finite for hours. The net and
# the data are not used, as workers propose a model of one tensor.
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
def settings_schema(build):
    return json.loads(cluster.psctl("config", "schema", build=build).stdout)["properties"]


def choices(section, key, build=OWN_BUILD):
    """Returns the values that the build's run.yaml accepts for a key; empty if it does not know the
    key."""
    properties = settings_schema(build).get(section, {}).get("properties", {})
    return properties.get(key, {}).get("enum", [])


def rule_missing(rule, build=OWN_BUILD):
    """Returns why no run of the build can have this rule; empty if one can."""
    if rule in choices("optimizer", "kind", build):
        return ""
    return f"run.yaml knows no optimizer.kind {rule}"


class SlipstreamContender(Contender):
    """Slipstream over one transport: those of run.yaml, and "mtls", which is tcp with certificates
    on both sides."""

    def __init__(self, transport, setting, directory, build=OWN_BUILD):
        super().__init__(setting, directory, build)
        self.name = name_in(build, f"slipstream-{transport}")
        self.is_encrypted = transport == "mtls"
        self.transport = "tcp" if self.is_encrypted else transport
        self.limit = f"raw-{self.transport}"
        self.cluster = None

    def missing(self):
        if self.is_encrypted and "mtls" not in settings_schema(self.build)["security"]["properties"]:
            return "run.yaml knows no security.mtls"
        if self.transport not in choices("wire", "transport", self.build):
            return f"run.yaml knows no wire.transport {self.transport}"
        return rule_missing(self.setting.rule, self.build)

    def run_yaml(self):
        text = RUN_YAML.format(policy=self.setting.policy, rule=self.setting.rule,
                               servers=self.server_names(), workers=self.setting.workers,
                               transport=self.transport)
        if self.setting.operation != "push":
            return text
        # Workers that publish fetch nothing.
        text = text.replace("model: {preset: mlp}\ndata: {format: synthetic}\n", "")
        text = text.replace("batch_size: 1, epochs: 1", "batch_size: 1, work: own")
        text = text.replace("evaluation: {every_epochs: 0}\n", "worker: {algorithm: publish}\n")
        return re.sub("optimizer: .*\n", "", text)

    def server_names(self):
        # The system chooses the ports; these are only names.
        return ",".join(f"localhost:{7070 + shard}" for shard in range(self.setting.servers))

    def certify(self, config):
        """Makes certificates of all members. Returns the path of the authority's certificate."""
        certificates = self.directory / "certs"
        cluster.psctl("certs", "init", str(certificates), "--config", config, build=self.build)
        return str(certificates / "ca.crt")

    def start(self):
        self.start_servers()
        for worker in range(self.setting.workers):
            self.workers.append(self.start_worker(worker))

    def start_servers(self):
        config = cluster.write_config(self.directory, self.run_yaml())
        settings = {"cluster.servers": self.server_names()}
        if self.is_encrypted:
            settings["security.mtls.ca"] = self.certify(config)
        self.cluster = cluster.Cluster(config, settings, self.directory, workers=0,
                                       build=self.build)

    def start_worker(self, worker):
        operation = self.setting.operation
        return ContenderProcess(
            f"driver-{worker}",
            [self.build.program("tests/benchmarks/exchange_driver"), "--coordinator",
             self.cluster.coordinator, "--worker", worker, "--bytes", self.setting.bytes,
             *([] if operation == "exchange" else ["--operation", operation]),
             *(["--checks-values"] if self.setting.checks_values else []),
             *self.cluster.credentials()],
            self.directory)

    def stop(self):
        super().stop()
        if self.cluster is not None:
            self.cluster.stop()
