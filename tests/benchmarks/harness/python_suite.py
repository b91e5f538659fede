"""Measures the Python package beside the client that it is made of, in the same rounds: whole models
of 64 MiB, exchanged, pushed and pulled, and of the size of LeNet-5, where an exchange is mostly waiting."""
import functools

from contender import Setting
from contenders import TRANSPORTS, in_directories, slipstream, sockets
from figures import rows_of
from latency_suite import LENET_BYTES
from python_contender import PythonContender
from table import aligned, bytes_text, number_text

# The package always checks the values of a push.
SETTINGS = tuple(Setting(size, operation=operation, checks_values=operation != "pull")
                 for size, operation in ((64 << 20, "exchange"), (64 << 20, "push"),
                                         (64 << 20, "pull"), (LENET_BYTES, "exchange")))


def contenders(setting, directory, builds):
    ours = [functools.partial(PythonContender, transport) for transport in TRANSPORTS]
    # Raw sockets exchange; builds before may not know the other operations or the check.
    others = sockets(("tcp",)) if setting.operation == "exchange" else []
    return in_directories([*slipstream(TRANSPORTS, builds[:1]), *ours, *others], setting, directory)


def run(suite):
    rows = []
    for setting in SETTINGS:
        name = f"{setting.operation} of {bytes_text(setting.bytes)}"
        found = rows_of("python", suite.compare(f"python {name}", contenders(
            setting, suite.directory / f"python-{setting.operation}-{setting.bytes}", suite.builds)))
        rows += [{**row, "operation": setting.operation} for row in found]
    return rows


def row_text(row):
    return f"{row['contender']}, {row['operation']} of {row['bytes']} B"


def print_table(rows):
    if not rows:
        return
    print("\nMedian of one operation in microseconds, async, 1 worker, 1 server; how many times as fast "
          "as the client in C++ over the same transport")
    print(aligned([["contender", "operation", "bytes", "p50 us", "spread", "times raw TCP", "times C++"],
                   *([row["contender"], row["operation"], str(row["bytes"]), number_text(row["microseconds"], 1),
                      f"{100 * row['spread']:.0f} %", number_text(row["ratio_to_raw_tcp"]),
                      number_text(row["ratio_to_limit"])] for row in rows)]))
