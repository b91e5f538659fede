"""Trains through whole clusters: compares accuracy and speed with those of CPUs."""
import dataclasses
import math
import statistics

import cluster
from steps import NETS, batches_of

POLICIES = ("hardsync", "softsync", "async")
RUNS = 3
SECONDS = 4  # The length of each run whose speed is measured.
POINTS_MAX = 0.5  # How far the mean accuracy on GPU and CPUs may differ, in percent.
STUDENT_T = 2.776  # With 95 % confidence, for the difference of two means of three runs each.
SYNTHETIC = ("data.format=synthetic", "data.train_examples=20000", "data.test_examples=4000")
SYNTHETIC_FEW = ("data.format=synthetic", "data.train_examples=1000", "data.test_examples=100")
FEW = ("alexnet",)  # Nets of whose examples 20,000 would take gigabytes.
HEAD = ("policy", "runs", "accuracy, GPU", "accuracy, processors", "examples/s, GPU",
        "examples/s, processors", "communication hidden")
CLUSTER_HEAD = ("net", "batch", "pipeline", "steps/s", "examples/s", "communication hidden",
                "overlap", "backward, ms", "first gradient sent to applied, ms")


@dataclasses.dataclass
class Case:
    """A training run to compare."""
    name: str
    policy: str
    device: str = "cuda"
    settings: tuple = ()


def cases(gpus):
    found = [Case(policy, policy) for policy in POLICIES]
    if gpus > 1:
        found.append(Case("hardsync, one worker, two GPUs", "hardsync", "cuda:0,1",
                          ("cluster.workers=1",)))
    return found


def runs_of(programs, options, case, device):
    """Makes runs with different seeds, since rounding alone makes runs diverge, even under
    hardsync."""
    data = (f"data.path={options.data.resolve()}",) if options.data else SYNTHETIC
    return [cluster.run(programs, case.policy,
                        [*data, f"training.epochs={options.epochs}", f"compute.device={device}",
                         f"seed={seed}", *case.settings]) for seed in range(1, RUNS + 1)]


def mean(summaries, key):
    """Returns the mean, or None if a run failed or lacks the figure."""
    values = [summary and summary.get(key) for summary in summaries]
    return None if None in values else sum(values) / len(values)


def chance(ours, theirs):
    """Returns how far the means of two samples of accuracies, in percent, may be apart by chance."""
    variance = statistics.variance(ours) + statistics.variance(theirs)
    return STUDENT_T * math.sqrt(variance / RUNS)


def compare(programs, options, section, case):
    ours, theirs = (runs_of(programs, options, case, device) for device in (case.device, "cpu"))
    accuracies = [mean(summaries, "test_accuracy") for summaries in (ours, theirs)]
    rates = [mean(summaries, "examples_per_second") for summaries in (ours, theirs)]
    if None in accuracies or None in rates:
        section.add(case.name, RUNS, "did not end well", "", "", "", "")
        section.fail(f"{case.name}: a run did not end well")
        return
    points = [100 * accuracy for accuracy in accuracies]
    hidden = sum(cluster.share(summary, "communication_hidden") for summary in ours) / RUNS
    section.add(case.name, RUNS, *(f"{value:.2f}" for value in points), *map(round, rates),
                f"{100 * hidden:.2f} %")
    allowed = max(POINTS_MAX, chance(*([100 * summary["test_accuracy"] for summary in summaries]
                                       for summaries in (ours, theirs))))
    if abs(points[0] - points[1]) > allowed:
        section.fail(f"{case.name}: accuracies differ by more than {allowed:.2f} points")


def accuracy(programs, options, section):
    what = "Fashion-MNIST" if options.data else "generated examples"
    section.note(f"LeNet-5, {what}, {options.epochs} epochs, four workers unless said; means of "
                 f"{RUNS} runs with the same seeds, which may differ by {POINTS_MAX} points, or by "
                 "what the spread of the runs explains with 95 % confidence.")
    for case in cases(options.gpus):
        compare(programs, options, section, case)


def speed(programs, options, section):
    section.note("One worker with a GPU, one server, async, generated examples. With a pipeline of 1 "
                 "nets of less than 1 MiB push and pull after computing: nothing is hidden. "
                 "Overlap is compute / (compute + communication not hidden). Backward is the time "
                 "from the loss to the last gradient on the host. Applied: the last shard has begun "
                 "to answer the push; what was sent first was on the host just before.")
    wanted = [(net, batch, 1) for net in options.net or NETS for batch in batches_of(net, options)]
    piped = [(net, batch, 2) for net, batch, _ in wanted]
    for net, batch, pipeline in [*wanted, *piped]:
        speed_of(programs, section, net, batch, pipeline)


def speed_of(programs, section, net, batch, pipeline):
    data = SYNTHETIC_FEW if net in FEW else SYNTHETIC
    summary = cluster.run(programs, "async", [
        *data, f"model.preset={net}", f"training.batch_size={batch}",
        f"training.pipeline_depth={pipeline}", f"training.max_seconds={SECONDS}",
        "training.epochs=10000", "evaluation.every_epochs=10000", "compute.device=cuda",
        "cluster.workers=1", "cluster.servers=[localhost:7070]"])
    rate = mean([summary], "examples_per_second")
    if rate is None:
        section.fail(f"{net} {batch}: the run did not end well")
        return
    section.add(net, batch, pipeline, round(rate / batch), round(rate),
                *(f"{100 * cluster.share(summary, name):.2f} %"
                  for name in ("communication_hidden", "overlap")),
                cluster.milliseconds(cluster.median_backward(programs, summary)),
                cluster.milliseconds(cluster.median_to_applied(programs, summary)))
