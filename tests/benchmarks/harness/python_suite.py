"""Measures the Python package beside the client that it is made of, in the same rounds: whole models
of 64 MiB, and of the size of LeNet-5, where an exchange is mostly waiting."""
import functools

from contender import Setting
from contenders import TRANSPORTS, in_directories, slipstream, sockets
from figures import rows_of
from latency_suite import LENET_BYTES
from python_contender import PythonContender
from table import aligned, bytes_text, number_text

SIZES = (64 << 20, LENET_BYTES)


def contenders(setting, directory, builds):
    ours = [functools.partial(PythonContender, transport) for transport in TRANSPORTS]
    return in_directories([*slipstream(TRANSPORTS, builds), *ours, *sockets(("tcp",))], setting,
                          directory)


def run(suite):
    rows = []
    for size in SIZES:
        setting = Setting(size)
        rows += rows_of("python", suite.compare(f"python {bytes_text(size)}", contenders(
            setting, suite.directory / f"python-{size}", suite.builds)))
    return rows


def row_text(row):
    return f"{row['contender']}, {row['bytes']} B"


def print_table(rows):
    if not rows:
        return
    print("\nMedian of one exchange in microseconds, async, 1 worker, 1 server; how many times as fast "
          "as the client in C++ over the same transport")
    print(aligned([["contender", "bytes", "p50 us", "spread", "times raw TCP", "times C++"],
                   *([row["contender"], str(row["bytes"]), number_text(row["microseconds"], 1),
                      f"{100 * row['spread']:.0f} %", number_text(row["ratio_to_raw_tcp"]),
                      number_text(row["ratio_to_limit"])] for row in rows)]))
