"""One run under each policy by four workers that share the GPU, and where there are several GPUs one by
a worker that has two, beside the same on processors."""
import dataclasses
import json
import statistics

import report

POLICIES = ("hardsync", "softsync", "async")
RUNS = 3
POINTS_MAX = 0.5  # Of accuracy, between the GPU's run and the processors'.
TIMEOUT = 600
SYNTHETIC = ("data.format=synthetic", "data.train_examples=20000", "data.test_examples=4000")


@dataclasses.dataclass
class Case:
    """What is trained, and how often: only hardsync does not depend on timing."""
    name: str
    policy: str
    device: str = "cuda"
    settings: tuple = ()
    runs: int = 1


def cases(gpus):
    found = [Case(policy, policy, runs=1 if policy == "hardsync" else RUNS) for policy in POLICIES]
    if gpus > 1:
        found.append(Case("hardsync, one worker, two GPUs", "hardsync", "cuda:0,1",
                          ("cluster.workers=1",)))
    return found


def run(programs, options, case, device):
    data = (f"data.path={options.data.resolve()}",) if options.data else SYNTHETIC
    settings = [*data, f"training.epochs={options.epochs}", f"compute.device={device}",
                *case.settings]
    command = [programs.program("psctl"), "run",
               str(programs.root / "examples" / f"{case.policy}.yaml"), "-o", "json"]
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


def row_of(programs, options, case):
    """The table's cells, and whether the GPUs' runs ended as well as the processors'."""
    ours, theirs = ([run(programs, options, case, device) for _ in range(case.runs)]
                    for device in (case.device, "cpu"))
    accuracies = [mean(summaries, "test_accuracy") for summaries in (ours, theirs)]
    rates = [mean(summaries, "examples_per_second") for summaries in (ours, theirs)]
    if None in accuracies or None in rates:
        return (case.name, case.runs, "did not end well", "", "", "", "", ""), False
    points = [100 * accuracy for accuracy in accuracies]
    hidden = sum(map(hidden_share, ours)) / case.runs
    applied = [seconds for summary in ours for seconds in seconds_to_applied(programs, summary)]
    cells = (case.name, case.runs, *(f"{value:.2f}" for value in points), *map(round, rates),
             f"{100 * hidden:.1f} %",
             f"{1000 * statistics.median(applied):.1f} ms" if applied else "unknown")
    return cells, abs(points[0] - points[1]) <= POINTS_MAX


def measure(programs, options):
    rows, failed = [], False
    for case in cases(options.gpus):
        row, is_well = row_of(programs, options, case)
        rows.append(row)
        failed |= not is_well
    lines = report.table(["policy", "runs", "accuracy, GPU", "accuracy, processors",
                          "examples/s, GPU", "examples/s, processors", "communication hidden",
                          "loss to applied, p50"], rows)
    what = "Fashion-MNIST" if options.data else "generated examples"
    lines += ["", f"LeNet-5, {what}, {options.epochs} epochs, four workers unless said; means of the "
              f"runs, whose accuracies may differ by {POINTS_MAX} points. Applied: the last shard has begun to "
              "answer the push; under hardsync and softsync that includes the wait for the others."]
    return report.Section("Training", lines, failed)
