"""The targets that have to be built: in this checkout and, with --against, in the other one.

Only the programs of the other checkout are used, so its harness may be older than this one.
"""
import re

import kernel_suite

EXCHANGE_PROGRAMS = ["//server:ps_server", "//deploy/psctl", "//tests/benchmarks:exchange_driver"]
TRAINING_PROGRAMS = ["//server:ps_server", "//worker:ps_worker", "//deploy/psctl"]
RAW_PROBES = ["//tests/benchmarks:raw_probe", "//tests/benchmarks:raw_shm_probe"]
# The programs of Slipstream's contenders, by part. Both builds need them.
SLIPSTREAM_TARGETS = {
    "transport": EXCHANGE_PROGRAMS,
    "kernels": [] if kernel_suite.missing() else ["//tests/benchmarks:kernel_benchmark"],
    "latency": EXCHANGE_PROGRAMS,
    "python": [*EXCHANGE_PROGRAMS, "//worker/python:slipstream/_core.so"],
    "readers": ["//server:ps_server", "//deploy/psctl", "//worker/python:slipstream/_core.so"],
    "training": TRAINING_PROGRAMS,
    "durability": TRAINING_PROGRAMS,
}
# The programs of all other contenders. They are taken from this checkout.
PEER_TARGETS = {
    "transport": [*RAW_PROBES, "//tests/benchmarks:naive_probe"],
    "latency": RAW_PROBES,
    "python": RAW_PROBES,
}


def targets_of(parts, *tables):
    return sorted({target for table in tables for part in parts for target in table.get(part, [])})


def has_target(root, label):
    package, _, name = label[len("//"):].partition(":")
    build_file = root / package / "BUILD"
    name = name or package.rpartition("/")[2]
    return build_file.is_file() and re.search(
        rf'\bname = "{re.escape(name)}"', build_file.read_text(encoding="utf-8")) is not None


def fault(root, parts):
    """Returns why the checkout at `root` cannot be compared in these parts; empty if it can."""
    if not (root / "WORKSPACE").is_file():
        return (f"{root} is no checkout of Slipstream, as it has no WORKSPACE file; "
                "`git worktree add DIR COMMIT` makes one")
    lacking = [target for target in targets_of(parts, SLIPSTREAM_TARGETS)
               if not has_target(root, target)]
    if lacking:
        hit = [part for part in parts if set(lacking) & set(SLIPSTREAM_TARGETS[part])]
        return (f"{root} has no target {', '.join(lacking)}; take a commit that has it, or "
                f"leave {', '.join(hit)} out (--only names the parts to measure)")
    return ""


def plan(own_root, other_root, parts):
    """Returns what has to be built, as pairs of a checkout's root and its targets."""
    yield own_root, targets_of(parts, SLIPSTREAM_TARGETS, PEER_TARGETS)
    if other_root is not None:
        yield other_root, targets_of(parts, SLIPSTREAM_TARGETS)
