"""Measures exchanges of whole models (gradients sent, weights received) by size, shape and rule."""
from contender import Setting
from contenders import exchange_contenders
from figures import rows_of
from slipstream_contender import rule_missing
from table import bytes_text, exchange_table, limit_table

MIB = 1 << 20
SHAPES = ((1, 1), (2, 1), (2, 2))  # Numbers of workers and of servers.
SIZES = (64, MIB, 16 * MIB, 64 * MIB, 256 * MIB)
RULES = ("sgd", "momentum", "adam")
QUICK_SIZES = (64 * MIB,)
QUICK_RULES = ("sgd",)
# A shard holds at least 16 values, or the cuts of the model are not aligned.
PART_BYTES_MIN = 64


def settings(quick):
    """Yields settings with async, under which no worker waits for another, as with plain sockets."""
    for size in QUICK_SIZES if quick else SIZES:
        for rule in QUICK_RULES if quick else RULES:
            for workers, servers in SHAPES:
                if size // servers >= PART_BYTES_MIN:
                    yield Setting(size, workers, servers, rule)


def run(suite):
    rows = []
    for number, setting in enumerate(settings(suite.options.quick)):
        if rule_missing(setting.rule):
            suite.skip(setting.rule, rule_missing(setting.rule))
            continue
        contenders = exchange_contenders(setting, suite.directory / f"transport-{number}",
                                         suite.builds)
        title = f"transport {setting.rule} {bytes_text(setting.bytes)} {setting.shape}"
        rows += rows_of("transport", suite.compare(title, contenders))
    return rows


def row_text(row):
    return f"{row['contender']}, {bytes_text(row['bytes'])}, {row['rule']}, {row['shape']}"


def print_table(rows):
    shapes = [f"{workers}x{servers}" for workers, servers in SHAPES]
    for rule in RULES:
        for size in SIZES:
            chosen = [row for row in rows if row["rule"] == rule and row["bytes"] == size]
            if chosen:
                print(f"\nExchange of {bytes_text(size)}, {rule}: times raw TCP in the same rounds; "
                      "in brackets GB/s of both directions and the quartiles' distance")
                print(exchange_table(chosen, shapes))
            limited = [row for row in chosen if row["ratio_to_limit"] is not None]
            if limited:
                print("Times the contender with nothing but the same transport (raw-...):")
                print(limit_table(limited, shapes))
