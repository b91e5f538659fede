"""One run under each policy by four workers that share the GPU, beside the same on processors."""
import json
import statistics

import report

POLICIES = ("hardsync", "softsync", "async")
DEVICES = ("cuda", "cpu")
RUNS = 3
POINTS_MAX = 0.5  # Of accuracy, between the GPU's run and the processors'.
TIMEOUT = 600
SYNTHETIC = ("data.format=synthetic", "data.train_examples=20000", "data.test_examples=4000")


def run(programs, options, policy, device):
    data = (f"data.path={options.data.resolve()}",) if options.data else SYNTHETIC
    settings = [*data, f"training.epochs={options.epochs}", f"compute.device={device}"]
    command = [programs.program("psctl"), "run", str(programs.root / "examples" / f"{policy}.yaml"),
               "-o", "json"]
    for setting in settings:
        command += ["--set", setting]
    status, said = programs.run(command, TIMEOUT)
    begin = said.find("\n{\n") + 1 if not said.startswith("{") else 0
    if status != 0 or "{" not in said:
        print(said[-4000:])
        return None
    return json.JSONDecoder().raw_decode(said[begin:])[0]


def hidden_share(summary):
    shares = [worker.get("communication_hidden") or 0 for worker in summary["workers"]]
    return sum(shares) / len(shares) if shares else 0


def seconds_to_applied(programs, summary):
    """Of each step that the run's metrics tell of: from the loss, which is one product of matrices
    before the first gradient leaves the GPU, until the last shard has begun to answer the push."""
    metrics = programs.scratch / (summary.get("run_dir") or "") / "metrics.jsonl"
    lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.exists() else []
    steps = [step for line in lines for step in json.loads(line).get("lanes", [])]
    return [max(begin for begin, _ in step["pull"]) - step["backward"][0]
            for step in steps if step["pull"]]


def mean(summaries, key):
    """None if a run failed or has no such figure."""
    values = [summary and summary.get(key) for summary in summaries]
    return None if None in values else sum(values) / len(values)


def measure(programs, options):
    rows, failed = [], False
    for policy in POLICIES:
        # Only hardsync does not depend on timing.
        runs = 1 if policy == "hardsync" else RUNS
        summaries = {device: [run(programs, options, policy, device) for _ in range(runs)]
                     for device in DEVICES}
        accuracies = [mean(summaries[device], "test_accuracy") for device in DEVICES]
        rates = [mean(summaries[device], "examples_per_second") for device in DEVICES]
        if None in accuracies or None in rates:
            rows.append((policy, runs, "did not end well", "", "", "", "", ""))
            failed = True
            continue
        points = [100 * accuracy for accuracy in accuracies]
        failed |= abs(points[0] - points[1]) > POINTS_MAX
        hidden = sum(map(hidden_share, summaries["cuda"])) / runs
        applied = [seconds for summary in summaries["cuda"]
                   for seconds in seconds_to_applied(programs, summary)]
        rows.append((policy, runs, *(f"{value:.2f}" for value in points), *map(round, rates),
                     f"{100 * hidden:.1f} %",
                     f"{1000 * statistics.median(applied):.1f} ms" if applied else "unknown"))
    lines = report.table(["policy", "runs", "accuracy, GPU", "accuracy, processors",
                          "examples/s, GPU", "examples/s, processors", "communication hidden",
                          "loss to applied, p50"], rows)
    what = "Fashion-MNIST" if options.data else "generated examples"
    lines += ["", f"LeNet-5, {what}, {options.epochs} epochs, four workers; means of the runs, whose "
              f"accuracies may differ by {POINTS_MAX} points. Applied: the last shard has begun to "
              "answer the push; under hardsync and softsync that includes the wait for the others."]
    return report.Section("Training", lines, failed)
