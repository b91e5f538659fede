"""Measures what each level of durability costs, beside the rate of the disk itself."""
import functools
import statistics

from contender import other_name
from contenders import in_directories
from contender_process import ContenderFailed
from durability_contenders import Disk, DurabilitySetting, DurableTraining
from figures import load_figures, other_figures, rates_by_name, ratio, spread
from rounds import say
from table import aligned, bytes_text, number_text

LEVELS = ("memory", "checkpoint", "synced")
UNITS = 21_000  # Of a hidden layer that makes the net about 64 MiB large.
NETS = {"64 MiB": (4 * (795 * UNITS + 10), "{input: [1, 28, 28], layers: [flatten, {dense: {units: "
                   f"{UNITS}}}}}, {{dense: {{units: 10}}}}]}}"),
        "lenet5": (4 * 61_706, "{preset: lenet5}")}
# A turn has at least two checkpoints.
SECONDS_TIMES = 25
QUICK_SECONDS_TIMES = 4
ROUNDS_MAX = 5
RETURNS = 3
# Pairs of spans with a save and without, by seconds between two checkpoints.
STALL_PAIRS = {1: 20, 10: 10}
QUICK_STALL_PAIRS = {1: 10, 10: 3}


def contenders(builds):
    levels = [functools.partial(DurableTraining, level, build=build)
              for level in LEVELS for build in builds]
    return levels if len(builds) > 1 else [*levels, Disk]


def attempt(suite, contender, what, work, otherwise):
    """Returns the result of `work`; `otherwise` if it fails, or if the level saves nothing."""
    if contender.level == "memory":
        return otherwise
    say(f"  {contender.name}: {what}")
    try:
        return work()
    except (AssertionError, ContenderFailed) as failure:
        suite.failed.append(f"{contender.name}: {failure}")
        return otherwise


def durable_figures(suite, contender):
    """Returns what only runs of Slipstream have."""
    if not isinstance(contender, DurableTraining):
        return {"longest_gap_ms": None, "disk_bytes": None, "return_seconds": None, "stalls": {}}
    returns = attempt(suite, contender, "time of return", lambda: [
        contender.time_return(number) for number in range(RETURNS)], [])
    pairs = QUICK_STALL_PAIRS if suite.options.quick else STALL_PAIRS
    stalls = attempt(suite, contender, "stall by checkpoints", lambda: contender.stalls(pairs), {})
    return {"stalls": stalls, "longest_gap_ms": round(1e3 * statistics.median(contender.gaps), 2),
            "disk_bytes": max(contender.disk_bytes),
            "return_seconds": round(statistics.median(returns), 3) if returns else None}


def rows_of(suite, comparison):
    rates_of = rates_by_name(comparison)
    for series in comparison.series:
        if not series.turns:
            continue
        contender = series.contender
        memory = name_of_memory(contender)
        yield {"benchmark": "durability", "contender": contender.name, "net": contender.setting.net,
               "bytes": contender.setting.bytes, "workers": contender.setting.workers, "servers": 1,
               "rule": "momentum", "policy": "async", "interval": contender.setting.interval,
               "updates_per_second": round(statistics.median(series.rates), 2),
               "ratio_to_memory": ratio(series.rates, rates_of.get(memory)),
               "ratio_to_disk": ratio(series.rates, rates_of.get(Disk.name)),
               "gigabytes_per_second": None, "ratio_to_raw_tcp": None,
               "spread": round(spread(series.rates), 4), "steps_per_round": series.exchanges,
               **durable_figures(suite, contender),
               **other_figures(series.rates, rates_of.get(other_name(contender.name))),
               **load_figures(comparison)}


def name_of_memory(contender):
    """Returns the name of the contender of the same build that keeps everything in memory."""
    is_other = contender.name.endswith(other_name(""))
    return other_name(LEVELS[0]) if is_other else LEVELS[0]


def run(suite):
    quick = suite.options.quick
    rows = []
    for net, (size, model) in NETS.items():
        setting = DurabilitySetting(size, net=net, model=model, interval="1s" if quick else "10s")
        chosen = in_directories(contenders(suite.builds), setting,
                                suite.directory / f"durability-{net.replace(' ', '')}")
        comparison = suite.compare(
            f"durability {net}", chosen, rounds=min(suite.options.rounds, ROUNDS_MAX),
            seconds=suite.options.seconds * (QUICK_SECONDS_TIMES if quick else SECONDS_TIMES))
        rows += rows_of(suite, comparison)
    return rows


def row_text(row):
    return f"{row['contender']}, {row['net']}"


def size_text(count):
    return "-" if count is None else f"{count / (1 << 20):.1f}"


def share_text(share):
    return f"{100 * share:.1f} %"


def print_stalls(rows):
    stalls = [(row, interval_s, stall) for row in rows
              for interval_s, stall in row["stalls"].items()]
    if not stalls:
        return
    print("\nStall by checkpoints: spans of one run, each as long as an interval, with a save and "
          "without in turn: the share of the updates that the save costs, the median of the pairs "
          "and its quartiles; the share of the time in pauses, of which each is longer than three "
          "median gaps between updates, and the longest gap, both with and without a save")
    print(aligned([["net", "level", "interval", "pairs", "updates/s", "lost", "quartiles", "pauses",
                    "without", "gap ms", "without"],
                   *([row["net"], row["contender"], f"{interval_s} s", str(stall["pairs"]),
                      number_text(stall["updates_per_second_without"], 1),
                      share_text(stall["lost_share"]),
                      f"{share_text(stall['lost_share_low'])} to "
                      f"{share_text(stall['lost_share_high'])}",
                      share_text(stall["pause_share"]), share_text(stall["pause_share_without"]),
                      number_text(stall["longest_gap_ms"], 1),
                      number_text(stall["longest_gap_ms_without"], 1)]
                     for row, interval_s, stall in stalls)]))


def print_table(rows):
    if not rows:
        return
    print("\nDurability, 1 worker, 1 server, async, momentum, a checkpoint every "
          f"{rows[0]['interval']}: updates per second, times memory and times the disk (which writes "
          "and syncs the bytes of a push) in the same rounds; the longest time between two updates; "
          "what a run leaves on the disk; and the time from the server's death to the next update")
    print(aligned([["net", "level", "bytes", "updates/s", "spread", "times memory", "times disk",
                    "gap ms", "disk MiB", "return s"],
                   *([row["net"], row["contender"], bytes_text(row["bytes"]),
                      number_text(row["updates_per_second"], 1), f"{100 * row['spread']:.0f} %",
                      number_text(row["ratio_to_memory"]), number_text(row["ratio_to_disk"]),
                      number_text(row["longest_gap_ms"], 1), size_text(row["disk_bytes"]),
                      number_text(row["return_seconds"])] for row in rows)]))
    print_stalls(rows)
