#!/usr/bin/env python3
"""Measures what the death of one reader costs the others.

    python3 tests/benchmarks/killed_reader.py [READERS [MIB [ROUNDS]]]

READERS (4) follow a program that publishes states of MIB (64) MiB. In each of ROUNDS (5), with new
processes, STATES states go to all of them. Then one is killed while a state is on its way, and as many
go to the others. Prints one JSON object: the median milliseconds from the begin of a publication until
the last of the others has the state, before the death, for the state at the death, and after it, and the
longest time after it.
"""
import json
import pathlib
import statistics
import sys
import tempfile

TESTS = pathlib.Path(__file__).absolute().parents[1]
sys.path += [str(TESTS / folder) for folder in ("benchmarks/harness", "integration", "support")]

from contender import Setting
from contender_process import EXCHANGES_S
from delivery_contenders import SlipstreamDelivery

STATES = 10


def deliver(contender, readers, kills=None):
    """Has one state published, and `kills` killed when it is. Returns the milliseconds until the last of
    the readers has it."""
    contender.source.ask("publish")
    _, begun, _ = contender.source.answer("published", EXCHANGES_S)
    if kills is not None:
        kills.process.kill()
    taken = [reader.answer("taken", EXCHANGES_S) for reader in readers]
    return 1000 * (max(float(moment) for _, moment in taken) - float(begun))


def measure(readers, mib, directory):
    contender = SlipstreamDelivery(Setting(bytes=mib << 20, workers=readers), pathlib.Path(directory))
    try:
        contender.start()
        contender.await_workers()
        *others, dies = contender.workers
        before = []
        for _ in range(STATES):
            before.append(deliver(contender, others))
            dies.answer("taken", EXCHANGES_S)
        at_death = deliver(contender, others, kills=dies)
        return before, at_death, [deliver(contender, others) for _ in range(STATES)]
    finally:
        contender.stop()


def main(readers=4, mib=64, rounds=5):
    found = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            found.append(measure(readers, mib, directory))
    before, at_death, after = zip(*found)
    print(json.dumps({
        "readers": readers, "mib": mib, "rounds": rounds,
        "before_ms": round(statistics.median(sum(before, [])), 1),
        "at_death_ms": round(statistics.median(at_death), 1),
        "after_ms": round(statistics.median(sum(after, [])), 1),
        "longest_before_ms": round(max(sum(before, [])), 1),
        "longest_after_ms": round(max(at_death + tuple(sum(after, []))), 1)}))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
