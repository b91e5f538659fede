#!/usr/bin/env python3
"""Stands for ps_lab: leaves a run directory whose figures follow from the settings.

In the directory FAKE_DIR, it adds a line with its cores to `starts`. While that has a file `hold`, it
writes `held` and waits for ever. With a file `fail`, it fails; with `refuse`, it refuses its settings; with
`unreadable`, it cannot read its data; with `diverge`, the run diverges; with `replace`, this program becomes
another one; with `skip`, seed 2 does not measure epoch 1.
"""
import argparse
import hashlib
import json
import os
import pathlib
import re
import select
import sys

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["run"])
parser.add_argument("settings", type=pathlib.Path)
parser.add_argument("--world", type=pathlib.Path, required=True)
parser.add_argument("--run-dir", type=pathlib.Path, required=True)
parser.add_argument("--threads", type=int, required=True)
arguments = parser.parse_args()

fake = pathlib.Path(os.environ["FAKE_DIR"])
with (fake / "starts").open("a") as starts:
    starts.write(f"{sorted(os.sched_getaffinity(0))}\n")
run = arguments.run_dir
settings = arguments.settings.read_text()
(run / "run.yaml").write_text(settings)
(run / "world.yaml").write_text(arguments.world.read_text())
if (fake / "hold").exists():
    (fake / "held").touch()
    select.select([], [], [])
if (fake / "fail").exists():
    sys.exit("error: told to fail")
if (fake / "unreadable").exists():
    print("error: data/x: cannot be opened", file=sys.stderr)
    sys.exit(74)
if (fake / "refuse").exists():
    print("world.yaml:1:1: error: unknown key", file=sys.stderr)
    sys.exit(78)

if (fake / "replace").exists():
    with open(__file__, "a", encoding="utf-8") as program:
        program.write("# Another build.\n")

digest = hashlib.sha256((settings + arguments.world.read_text()).encode()).hexdigest()
error = int(digest[:4], 16) / 2**17
diverged = (fake / "diverge").exists()
# Evaluations of other seeds are a little later.
late = 0.01 * (int(re.search(r"(?m)^seed: (\d+)", settings)[1]) - 1)
evaluations = [{"epoch": epoch, "epochs_measured": epoch + late, "test_accuracy": 1 - error / epoch,
                "test_loss": error, "seconds": 0, "final": epoch == 2} for epoch in (1, 2)]
if late > 0 and (fake / "skip").exists():
    del evaluations[0]
lines = [{"t": 0, "phase": "TRAINING", "examples": 0}] + [
    {"t": 10 * one["epoch"], "phase": "TRAINING", "examples": 100 * one["epoch"], "evaluations": [one]}
    for one in evaluations]
(run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
(run / "model.safetensors").write_bytes(b"weights of " + digest.encode())
(run / "summary.json").write_text(json.dumps({
    "engine": "virtual", "ended_by": "diverged" if diverged else "epochs",
    "divergence": {"epoch": 2, "updates": 7} if diverged else None,
    "test_accuracy": None if diverged else 1 - error / 2, "test_loss": error, "virtual_seconds": 20.5,
    "examples_per_virtual_second": 10, "epochs": 2, "updates": 40, "pushes": 40,
    "staleness": {"mean": 1.25, "p50": 1, "p99": 3, "max": 3, "histogram": [10, 15, 10, 5, 0, 0]},
    "weights_sha256": digest, "run_dir": str(run), "model": str(run / "model.safetensors")}))
sys.exit(81 if diverged else 0)
