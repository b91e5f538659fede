"""Measures examples per second of two one-thread workers, from end to end."""
import functools
import statistics

from contender import other_name
from contenders import in_directories
from figures import load_figures, other_figures, rates_by_name, ratio, spread
from table import aligned, number_text
from training_contenders import DdpTraining, SlipstreamTraining, TrainingSetting

NETS = {"mlp": 235_146, "lenet5": 61_706}  # The number of parameters of each.
# A run's start and end take tenths of a second, so turns are this many times longer than those of
# an exchange.
SECONDS_TIMES = 10
ROUNDS_MAX = 5
POLICIES = ("hardsync", "async")


def contenders(builds):
    ours = [functools.partial(SlipstreamTraining, policy, build=build)
            for policy in POLICIES for build in builds]
    if len(builds) > 1:
        return ours  # What follows says nothing about the difference between two builds.
    return ours + [functools.partial(SlipstreamTraining, "allreduce"),
                   *(functools.partial(DdpTraining, is_tuned) for is_tuned in (False, True))]


def best_peer(comparison):
    """Returns the rates of PyTorch in the better of its settings."""
    peers = [series.rates for series in comparison.series
             if series.turns and isinstance(series.contender, DdpTraining)]
    return max(peers, key=statistics.median, default=[])


def rows_of(comparison):
    peer = best_peer(comparison)
    rates_of = rates_by_name(comparison)
    for series in comparison.series:
        if not series.turns:
            continue
        setting = series.contender.setting
        is_ours = isinstance(series.contender, SlipstreamTraining)
        yield {"benchmark": "training", "contender": series.contender.name, "net": setting.net,
               "bytes": setting.bytes, "workers": setting.workers,
               "servers": setting.servers if is_ours else 0, "rule": setting.rule,
               "policy": setting.policy, "batch": setting.batch,
               "examples_per_second": round(statistics.median(series.rates), 1),
               "ratio_to_ddp": ratio(series.rates, peer),
               "gigabytes_per_second": None, "ratio_to_raw_tcp": None,
               "spread": round(spread(series.rates), 4), "steps_per_round": series.exchanges,
               **other_figures(series.rates, rates_of.get(other_name(series.contender.name))),
               **load_figures(comparison)}


def run(suite):
    rows = []
    for net, parameters in NETS.items():
        setting = TrainingSetting(4 * parameters, workers=2, rule="momentum", net=net)
        chosen = in_directories(contenders(suite.builds), setting,
                                suite.directory / f"training-{net}")
        rows += rows_of(suite.compare(f"training {net}", chosen,
                                      rounds=min(suite.options.rounds, ROUNDS_MAX),
                                      seconds=suite.options.seconds * SECONDS_TIMES))
    return rows


def row_text(row):
    return f"{row['contender']}, {row['net']}"


def print_table(rows):
    if not rows:
        return
    print("\nTraining, two workers of one thread: examples per second from end to end, and times "
          "DistributedDataParallel over gloo in the better of its settings")
    print(aligned([["net", "contender", "batch", "examples/s", "spread", "times DDP"],
                   *([row["net"], row["contender"], str(row["batch"]),
                      f"{row['examples_per_second']:.0f}", f"{100 * row['spread']:.0f} %",
                      number_text(row["ratio_to_ddp"])] for row in rows)]))
