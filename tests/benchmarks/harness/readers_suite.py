"""Measures how fast a state that was published reaches all readers of a run on the same machine."""
from contender import Setting
from delivery_contenders import delivery_contenders
from figures import rates_by_name, ratio, rows_of
from table import aligned, bytes_text, number_text

STATE_BYTES = 64 << 20
READERS = (1, 4, 16)
SERVERS = (1, 2)
QUICK_SERVERS = (1,)
COPY = "raw-shm"


def settings(quick):
    """Yields settings whose workers are the readers; the rule is that of published weights."""
    for servers in QUICK_SERVERS if quick else SERVERS:
        for readers in READERS:
            yield Setting(STATE_BYTES, readers, servers, "assign")


def readers_rows(comparison):
    rates_of = rates_by_name(comparison)
    for row in rows_of("readers", comparison):
        yield {**row, "workers": 1, "readers": row["workers"],
               "ratio_to_raw_shm": ratio(rates_of[row["contender"]], rates_of.get(COPY))}


def run(suite):
    rows = []
    for setting in settings(suite.options.quick):
        title = f"readers {bytes_text(setting.bytes)} {setting.shape}"
        directory = suite.directory / f"readers-{setting.shape}"
        rows += readers_rows(suite.compare(
            title, delivery_contenders(setting, directory, suite.builds)))
    return rows


def row_text(row):
    return f"{row['contender']}, {row['shape']}"


def print_table(rows):
    if not rows:
        return
    print(f"\nReaders x servers: GB/s of {bytes_text(STATE_BYTES)} to all readers, from the end of its "
          "publication until the last has it; times the others in the same rounds (its limit: a plain "
          "local socket); and the median time from the begin of the publication")
    print(aligned([["contender", "readers x servers", "GB/s", "spread", "times raw TCP",
                    "times its limit", "times raw shm", "p50 ms"],
                   *([row["contender"], row["shape"], number_text(row["gigabytes_per_second"]),
                      f"{100 * row['spread']:.0f} %", number_text(row["ratio_to_raw_tcp"]),
                      number_text(row["ratio_to_limit"]), number_text(row["ratio_to_raw_shm"]),
                      number_text(row["microseconds"] / 1e3, 1)] for row in rows)]))
