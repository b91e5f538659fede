"""Shows the value of overlap on a slow link. Run it as root, from the root of the repository, after
`bazel build -c opt //server:ps_server //worker:ps_worker //deploy/psctl`.

    python3 tests/integration/limited_link.py [--rate 1gbit] [--batch 768] [--seconds 12]

A network namespace holds one worker. A virtual cable with a token bucket (tc tbf) on both ends
joins it to the server outside. The same training runs with each shard in one message (nothing can
overlap), in many chunks, in many chunks with a pipeline of two, and in many chunks whose values
travel as 16 bits. Step times come from the worker's own lane timestamps. Every line shows the
`exchange` of the first line, which is in fp32.
"""
import argparse
import statistics
import subprocess
import time

import cluster

NAMESPACE = "slipstream-limited"
HERE, THERE = "10.77.0.1", "10.77.0.2"

CONFIG = """
version: 1
name: limited-link
seed: 5
model:
  input: [1, 28, 28]
  layers:
    - flatten
    - dense: {{units: 512}}
    - relu
    - dense: {{units: 768}}
    - relu
    - dense: {{units: 768}}
    - relu
    - dense: {{units: 768}}
    - relu
    - dense: {{units: 10}}
data: {{format: synthetic, train_examples: 20000, test_examples: 100}}
training: {{batch_size: {batch}, epochs: 100000}}
consistency: {{policy: async}}
optimizer: {{kind: sgd, learning_rate: 0.01}}
evaluation: {{every_epochs: 0}}
cluster: {{servers: ["{here}:7070"], workers: 1}}
security: {{plaintext: accept_the_risk}}
"""

CHUNKS = {"wire.chunk_bytes": "256KiB"}
VARIANTS = (
    ("one message, no overlap", {"wire.chunk_bytes": "16MiB"}),
    ("chunks of 256 KiB, overlap", CHUNKS),
    ("the same, pipeline of two", {**CHUNKS, "training.pipeline_depth": 2}),
    ("chunks, both codecs bf16", {**CHUNKS, "wire.push_codec": "bf16", "wire.pull_codec": "bf16"}),
    ("chunks, both codecs fp16", {**CHUNKS, "wire.push_codec": "fp16", "wire.pull_codec": "fp16"}),
    ("chunks, int8 and bf16", {**CHUNKS, "wire.push_codec": "int8", "wire.pull_codec": "bf16"}),
)


def sh(command):
    subprocess.run(command.split(), check=True)


class Link:
    """The cable and the namespace at its end. Both are deleted when the block ends."""

    def __init__(self, rate):
        self.rate = rate

    def __enter__(self):
        sh(f"ip netns add {NAMESPACE}")
        try:
            sh(f"ip link add slip0 type veth peer name slip1 netns {NAMESPACE}")
            sh(f"ip addr add {HERE}/24 dev slip0")
            sh("ip link set slip0 up")
            inside = f"ip netns exec {NAMESPACE} "
            sh(inside + f"ip addr add {THERE}/24 dev slip1")
            sh(inside + "ip link set slip1 up")
            sh(inside + "ip link set lo up")
            bucket = f"root tbf rate {self.rate} burst 256kb latency 100ms"
            sh(f"tc qdisc add dev slip0 {bucket}")
            sh(inside + f"tc qdisc add dev slip1 {bucket}")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        sh(f"ip netns del {NAMESPACE}")  # Deletes both ends of the cable, too.


class LimitedCluster(cluster.Cluster):
    listen = f"{HERE}:0"
    worker_prefix = ("ip", "netns", "exec", NAMESPACE)


def collect(config, settings, seconds):
    """Trains for this many seconds. Returns the worker's figures, and its lane records by step."""
    steps = {}
    with cluster.scratch() as directory:
        path = cluster.write_config(directory, config)
        settings = {"cluster.servers": f"{HERE}:7070", **settings}
        with LimitedCluster(path, settings, directory, workers=1) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 3, "some updates")
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                worker = live.status()["workers"][0]
                steps.update({int(step["step"]): step for step in worker["recent_steps"]})
                time.sleep(0.2)
    return worker, steps


def median_step(steps):
    """Returns the median time from the begin of one forward pass to the begin of the next."""
    return statistics.median(steps[n + 1]["forward_begin"] - steps[n]["forward_begin"]
                             for n in steps if n + 1 in steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--batch", type=int, default=768)
    parser.add_argument("--seconds", type=float, default=12)
    options = parser.parse_args()
    config = CONFIG.format(batch=options.batch, here=HERE)
    print(f"{'':30}{'compute':>9}{'exchange':>9}{'sum':>9}{'step':>9}{'hidden':>8}{'overlap':>8}")
    with Link(options.rate):
        for name, settings in VARIANTS:
            worker, steps = collect(config, settings, options.seconds)
            compute = statistics.median(
                step["backward_end"] - step["forward_begin"] - step["waited_seconds"]
                for step in steps.values())
            if name == VARIANTS[0][0]:
                # Nothing overlaps in this variant, so this is the time that the exchange takes by
                # itself.
                exchange = statistics.median(step["lanes"][0]["pull_end"]
                                             - step["lanes"][0]["push_begin"]
                                             for step in steps.values())
            print(f"{name:30}{compute:8.3f}s{exchange:8.3f}s{compute + exchange:8.3f}s"
                  f"{median_step(steps):8.3f}s{worker['communication_hidden']:8.1%}"
                  f"{worker['overlap']:8.1%}", flush=True)


if __name__ == "__main__":
    main()
