"""Compares kernels of updates and of the wire with memcpy, from the rows that kernel_benchmark
prints."""
import json
import pathlib
import statistics
import subprocess

from contender import name_in, other_name
from figures import load_figures, other_figures, spread
from machine_load import LoadWatch
from programs import OWN_BUILD
from rounds import Comparison, in_turn, say
from table import aligned, bytes_text, number_text

DEADLINE_S = 1800
HEADER = pathlib.Path("/usr/include/benchmark/benchmark.h")
PROGRAM = "tests/benchmarks/kernel_benchmark"
# The number of fp32 arrays that each kernel reads or writes.
PASSES = {"finite": 1, "fold": 3, "sgd-single": 3, "sgd-sum": 4, "momentum-single": 5,
          "momentum-sum": 6, "adam-single": 7, "adam-sum": 8, "encode-bf16": 1.5,
          "encode-fp16": 1.5, "decode-bf16": 1.5, "decode-fp16": 1.5}
# The share of a contender's turn that a repetition of one kernel takes.
SHARE = 0.25


def missing():
    """Returns why the benchmark cannot be built; empty if it can."""
    return "" if HEADER.exists() else "not installed (apt install libbenchmark-dev)"


def parse(report):
    """Returns bytes per second by (kernel, gradient, bytes), one value for each repetition."""
    rates = {}
    for entry in report["benchmarks"]:
        if entry["run_type"] == "iteration":
            kernel, gradient, size = entry["name"].split("/")[:3]
            rates.setdefault((kernel, gradient, int(size)), []).append(entry["bytes_per_second"])
    return rates


def rows_of(rates, load, build=OWN_BUILD, rates_of_other=None):
    """Returns a row for each kernel of a build: its rate as a share of the rate of a memcpy of as
    many bytes, and its ratio to the same kernel of the other build."""
    for (kernel, gradient, size), values in rates.items():
        rate = statistics.median(values)
        row = {"benchmark": "kernels", "contender": name_in(build, kernel), "gradient": gradient,
               "bytes": size, "workers": 0, "servers": 0, "rule": kernel.partition("-")[0],
               "gigabytes_per_second": round(rate / 1e9, 3), "ratio_to_raw_tcp": None,
               "spread": round(spread(values), 4), **load}
        if kernel in PASSES:
            twin = rates.get((f"memcpy:{PASSES[kernel]}", "-", size))
            row["ratio_to_memcpy"] = twin and round(rate / statistics.median(twin), 4)
            other = (rates_of_other or {}).get((kernel, gradient, size))
            row.update(other_figures(values, other))
        yield row


def place(name):
    """Returns the place of a line in the table, as repetitions come in a random order."""
    places = [name_of(kernel) for kernel in PASSES for name_of in (str, other_name)]
    kernel, gradient = name
    return places.index(kernel) if kernel in places else len(places), kernel, gradient


def measure_once(build, suite, repetitions, log_file):
    done = subprocess.run(
        [build.program(PROGRAM), "--benchmark_format=json",
         f"--benchmark_min_time={suite.options.seconds * SHARE}",
         f"--benchmark_repetitions={repetitions}",
         # The repetitions of all kernels take turns.
         "--benchmark_enable_random_interleaving=true"],
        stdout=subprocess.PIPE, stderr=log_file, timeout=DEADLINE_S, check=True)
    return parse(json.loads(done.stdout))


def measure(suite, log_file, measure_turn=measure_once):
    """Returns the rates of each build. Two builds take turns, round by round. A single build has
    all its rounds in one process, which has to find only once how often a kernel must run."""
    turns = suite.options.rounds if len(suite.builds) > 1 else 1
    rates_of = {build: {} for build in suite.builds}
    for number in range(turns):
        for build in in_turn(suite.builds, number):
            turn = measure_turn(build, suite, suite.options.rounds // turns, log_file)
            for kernel, values in turn.items():
                rates_of[build].setdefault(kernel, []).extend(values)
    return rates_of


def run(suite):
    if missing():
        suite.skip("kernels", missing())
        return []
    say("kernels")
    log = suite.directory / "kernels.log"
    watch = LoadWatch()
    with open(log, "wb") as log_file:
        try:
            rates_of = measure(suite, log_file)
        except (subprocess.SubprocessError, ValueError, KeyError, FileNotFoundError) as failure:
            suite.failed.append(f"kernels: {failure} (log: {log})")
            return []
    load = load_figures(Comparison([], [watch.cores_of_others()] * suite.options.rounds))
    other = rates_of[suite.builds[-1]] if len(suite.builds) > 1 else {}
    return [row for build, rates in rates_of.items()
            for row in rows_of(rates, load, build, other if build is OWN_BUILD else {})]


def row_text(row):
    return f"{row['contender']}, {row['gradient']}, {bytes_text(row['bytes'])}"


def print_table(rows):
    sizes = sorted({row["bytes"] for row in rows})
    if not sizes:
        return
    print("\nKernels: times memcpy that reads and writes as many bytes; in brackets GB/s read "
          "and written. \"cut\": the gradient begins anywhere and lies in pieces")
    cells = {(row["contender"], row["gradient"], row["bytes"]):
             f"{number_text(row.get('ratio_to_memcpy'))} [{row['gigabytes_per_second']:.3g}]"
             for row in rows}
    names = sorted({(row["contender"], row["gradient"]) for row in rows}, key=place)
    print(aligned([["kernel, gradient", *map(bytes_text, sizes)],
                   *([f"{kernel}, {gradient}",
                      *(cells.get((kernel, gradient, size), "-") for size in sizes)]
                     for kernel, gradient in names)]))
