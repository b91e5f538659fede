#!/usr/bin/env python3
"""Measures exchanges per second of honest workers beside hostile peers, against the rate without
them.

    PYTHONPATH=tests/integration python3 tests/benchmarks/hostile_rate.py [PEERS [KIB [POLICY [ROUNDS]]]]

Two workers exchange a model of KIB KiB (4096) with one server under POLICY (async), over TCP,
without computing. Rounds (15) without and with PEERS (16) hostile peers take turns, about half a
second each. The peers of a round begin before it. For each kind of peer, prints one JSON object
with the median of the rounds' ratios, the smallest and the largest, and how the server ended the
peers.
"""
import json
import pathlib
import statistics
import sys
import time

sys.path.append(str(pathlib.Path(__file__).absolute().parent / "harness"))

import cluster
import hostile_peers
from contender import Setting
from slipstream_contender import SlipstreamContender
from wire_messages import blob, fixed64, number

SECONDS = 0.4  # The time of the honest workers' exchanges in one turn.
EXAMPLES = 1 << 40  # The size that exchange_driver gives for its training set.


def kinds(address, values, identity, shard_map):
    """Returns peers by name. Members have their own identity and may push; the others have none."""
    chunk = bytes(8192)
    member = hostile_peers.first_chunk(identity, shard_map, values, chunk)
    stranger = hostile_peers.first_chunk(fixed64(1, 1), shard_map, values, chunk)
    more = number(2, len(chunk) // 4) + blob(15, chunk)
    return {
        "says nothing": (hostile_peers.says_nothing, address),
        "half a greeting": (hostile_peers.says_nothing, address, hostile_peers.PREFACE[:10]),
        "stranger's push, a byte a second": (hostile_peers.dribbles, address, "Push",
                                             [stranger, more]),
        "first message, a byte a second": (hostile_peers.dribbles, address, "Push", [member]),
        "member's push, a byte a second": (hostile_peers.dribbles, address, "Push", [member, more]),
        "member's push that stops": (hostile_peers.stops_within_a_push, address, member),
        "pull, window never opened": (hostile_peers.takes_no_more, address),
        "pull, nothing read": (hostile_peers.stops_reading, address),
        "member's push cut in the middle": (hostile_peers.cuts, address, member),
    }


def rate(contender, count):
    return count / contender.run(count).seconds


def measure(peers, kib, policy, rounds, directory):
    contender = SlipstreamContender("tcp", Setting(bytes=kib << 10, workers=2, policy=policy),
                                    pathlib.Path(directory))
    try:
        contender.start()
        contender.await_workers()
        values = (kib << 10) // 4
        identity, shard_map = hostile_peers.join(contender.cluster.coordinator, {"weight": values},
                                                 EXAMPLES, 1)
        count = max(2, int(SECONDS * rate(contender, 20)))
        address = contender.cluster.coordinator
        for name, peer in kinds(address, values, identity, shard_map).items():
            turns = []
            with_ends = {}
            for _ in range(rounds):
                alone = rate(contender, count)
                with hostile_peers.Crowd([peer] * peers) as crowd:
                    time.sleep(0.5)  # Time to connect; too short a time only costs accuracy.
                    turns.append(rate(contender, count) / alone)
                for (_, reason), times in crowd.ends.items():
                    with_ends[reason] = with_ends.get(reason, 0) + times
                if crowd.failures:
                    raise AssertionError(crowd.failures)
            yield {"peers": f"{peers} x {name}", "kib": kib, "policy": policy,
                   "ratio": round(statistics.median(turns), 3),
                   "least": round(min(turns), 3), "greatest": round(max(turns), 3),
                   "ended_by_server": with_ends}
    finally:
        contender.stop()


def main():
    peers = int(sys.argv[1]) if len(sys.argv) > 1 else 16
    kib = int(sys.argv[2]) if len(sys.argv) > 2 else 4096
    policy = sys.argv[3] if len(sys.argv) > 3 else "async"
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 15
    with cluster.scratch() as directory:
        for result in measure(peers, kib, policy, rounds, directory):
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
