#!/usr/bin/env python3
"""Measures the peak memory of each shard while a large model is trained, against its bound.

    PYTHONPATH=tests/integration python3 tests/benchmarks/shard_memory.py [MIB [POLICY [OPTIMIZER]]]

Two workers train a model of MIB MiB (1024) in dense layers on two servers, with tiny batches, for
ten exchanges each. Prints one JSON object per shard: the peak resident memory (VmHWM), the bytes S
of its weights, and the bound (2 + λ)·S + 64 MiB, plus twice the optimizer's state. Exits 1 if a
shard exceeded its bound. Needs about eight times the model's size in memory: every worker holds
weights and gradients, and one of them a copy to evaluate.
"""
import json
import pathlib
import sys

import cluster
import process_figures

CONFIG = pathlib.Path(__file__).parent.parent / "integration" / "small_run.yaml"
WORKERS = 2
MIB = 1 << 20


def layers_of(mib):
    """Returns two wide dense layers with about `mib` MiB of parameters."""
    hidden = 8192
    units = max(16, (mib * MIB // 4 - 785 * hidden) // (hidden + 11))
    return f"[flatten, dense: {{units: {hidden}}}, relu, dense: {{units: {units}}}, relu, " \
           "dense: {units: 10}]"


def measure(mib, policy, optimizer):
    settings = {"model.input": "[1, 28, 28]", "model.layers": layers_of(mib),
                "data.train_examples": 100, "data.test_examples": 100, "training.batch_size": 5,
                "training.max_steps": 10 * WORKERS, "evaluation.every_epochs": 0,
                "consistency.policy": policy, "optimizer.kind": optimizer, "cluster.workers": WORKERS,
                "optimizer.learning_rate": 0.0001, "cluster.lease": "60s"}
    # Settings can override keys of the file, but cannot remove them.
    config_text = CONFIG.read_text(encoding="utf-8").replace("model: {preset: mlp}", "")
    if optimizer == "sgd":
        config_text = config_text.replace(", momentum: 0.9", "")
    with cluster.scratch() as directory:
        config = cluster.write_config(directory, config_text)
        with cluster.Cluster(config, settings, directory, workers=WORKERS) as live:
            status = live.wait_finished(timeout=600)
            peaks = [int(process_figures.status(server.pid)["VmHWM"]) * 1024
                     for server in live.servers]
    states = {"sgd": 0, "momentum": 2}.get(optimizer, 4)
    for shard, peak in zip(status["shards"], peaks):
        size = 4 * (int(shard["end"]) - int(shard["begin"]))
        bound = (2 + WORKERS + states) * size + 64 * MIB
        yield {"shard": int(shard["shard"]), "policy": policy, "optimizer": optimizer,
               "weights_mib": round(size / MIB, 1), "peak_mib": round(peak / MIB, 1),
               "bound_mib": round(bound / MIB, 1), "peak_in_weights": round(peak / size, 2),
               "within": peak <= bound}


def main():
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    policy = sys.argv[2] if len(sys.argv) > 2 else "softsync"
    optimizer = sys.argv[3] if len(sys.argv) > 3 else "sgd"
    results = list(measure(mib, policy, optimizer))
    for result in results:
        print(json.dumps(result))
    return 0 if all(result["within"] for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
