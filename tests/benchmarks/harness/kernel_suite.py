"""Kernels of updates and of the wire beside memcpy, from the rows that kernel_benchmark prints."""
import json
import pathlib
import statistics
import subprocess

from figures import load_figures, spread
from machine_load import LoadWatch
from programs import program
from rounds import Comparison, say
from table import aligned, bytes_text, number_text

DEADLINE_S = 1800
HEADER = pathlib.Path("/usr/include/benchmark/benchmark.h")
PROGRAM = "tests/benchmarks/kernel_benchmark"
# Arrays of fp32 that each reads or writes.
PASSES = {"finite": 1, "fold": 3, "sgd-single": 3, "sgd-sum": 4, "momentum-single": 5,
          "momentum-sum": 6, "adam-single": 7, "adam-sum": 8, "encode-bf16": 1.5,
          "encode-fp16": 1.5, "decode-bf16": 1.5, "decode-fp16": 1.5}
# A repetition of one kernel, of what a contender's turn may take.
SHARE = 0.25


def missing():
    """Why it cannot be built; empty if it can."""
    return "" if HEADER.exists() else "not installed (apt install libbenchmark-dev)"


def parse(report):
    """Bytes per second by (kernel, gradient, bytes), one for each repetition."""
    rates = {}
    for entry in report["benchmarks"]:
        if entry["run_type"] == "iteration":
            kernel, gradient, size = entry["name"].split("/")[:3]
            rates.setdefault((kernel, gradient, int(size)), []).append(entry["bytes_per_second"])
    return rates


def rows_of(rates, load):
    """Each kernel with its share of what memcpy reaches with as many bytes."""
    for (kernel, gradient, size), values in rates.items():
        rate = statistics.median(values)
        row = {"benchmark": "kernels", "contender": kernel, "gradient": gradient, "bytes": size,
               "workers": 0, "servers": 0, "rule": kernel.partition("-")[0],
               "gigabytes_per_second": round(rate / 1e9, 3), "ratio_to_raw_tcp": None,
               "spread": round(spread(values), 4), **load}
        if kernel in PASSES:
            twin = rates.get((f"memcpy:{PASSES[kernel]}", "-", size))
            row["ratio_to_memcpy"] = twin and round(rate / statistics.median(twin), 4)
        yield row


def place(name):
    """Of a line in the table; repetitions come in a random order."""
    kernels = list(PASSES)
    kernel, gradient = name
    return kernels.index(kernel) if kernel in kernels else len(kernels), kernel, gradient


def run(suite):
    if missing():
        suite.skip("kernels", missing())
        return []
    say("kernels")
    repetitions = suite.options.rounds
    log = suite.directory / "kernels.log"
    watch = LoadWatch()
    with open(log, "wb") as log_file:
        try:
            done = subprocess.run(
                [program(PROGRAM), "--benchmark_format=json",
                 f"--benchmark_min_time={suite.options.seconds * SHARE}",
                 f"--benchmark_repetitions={repetitions}",
                 # Repetitions of all kernels take turns.
                 "--benchmark_enable_random_interleaving=true"],
                stdout=subprocess.PIPE, stderr=log_file, timeout=DEADLINE_S, check=True)
            rates = parse(json.loads(done.stdout))
        except (subprocess.SubprocessError, ValueError, KeyError, FileNotFoundError) as failure:
            suite.failed.append(f"kernels: {failure} (log: {log})")
            return []
    return list(rows_of(rates, load_figures(
        Comparison([], [watch.cores_of_others()] * repetitions))))


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
                   *([f"{kernel}, {gradient}", *(cells[kernel, gradient, size] for size in sizes)]
                     for kernel, gradient in names)]))
