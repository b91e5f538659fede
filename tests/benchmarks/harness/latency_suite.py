"""Measures what a step of a small net takes beside its compute: an exchange with nothing to
compute."""
from contender import Setting
from contenders import latency_contenders, ping_contenders
from figures import rows_of
from table import aligned, number_text

# The size of LeNet-5 for images of 28 by 28: 61,706 parameters.
LENET_BYTES = 4 * 61_706
PING_BYTES = 64


def run(suite):
    lenet = Setting(LENET_BYTES, rule="momentum", policy="hardsync")
    contenders = latency_contenders(lenet, suite.directory / "latency-lenet5", suite.builds)
    rows = list(rows_of("latency", suite.compare("latency lenet5", contenders)))
    if len(suite.builds) > 1:
        return rows  # No build of Slipstream takes part in a ping.
    ping = Setting(PING_BYTES, rule="ping", policy="none")
    return rows + list(rows_of("latency", suite.compare(
        "latency 64 B", ping_contenders(ping, suite.directory / "latency-ping"))))


def row_text(row):
    return f"{row['contender']}, {row['bytes']} B, {row['rule']}"


def print_table(rows):
    if not rows:
        return
    print("\nMedian of one exchange in microseconds, hardsync, 1 worker, 1 server; \"ping\" is 64 "
          "bytes there and 64 back; the limit is the contender with nothing but the same transport")
    print(aligned([["contender", "bytes", "rule", "p50 us", "spread", "times raw TCP",
                    "times its limit"],
                   *([row["contender"], str(row["bytes"]), row["rule"],
                      number_text(row["microseconds"], 1), f"{100 * row['spread']:.0f} %",
                      number_text(row["ratio_to_raw_tcp"]),
                      number_text(row["ratio_to_limit"])] for row in rows)]))
