#!/usr/bin/env python3
"""Shows where the time of a Bazel command went, from the profile that it wrote:

    bazel test --profile=FILE.gz //... && tests/checks/build_profile.py FILE.gz

Seconds are summed over all actions that ran side by side, so with two processors the sum is up to
twice the elapsed time.
"""
import collections
import gzip
import json
import sys

KINDS = {"Compiling": "compile", "Linking": "link", "Testing": "test"}
LONGEST = 15


def actions(path):
    """Yields the actions of a profile, as (kind, what, seconds)."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    for event in events:
        if event.get("cat") == "action processing" and event.get("ph") == "X":
            verb, _, what = event["name"].partition(" ")
            yield KINDS.get(verb, "other"), what, event["dur"] / 1e6


def seconds_by_kind(path):
    """Returns seconds by kind of action, without kinds that took no time."""
    seconds = collections.Counter()
    for kind, _, duration in actions(path):
        seconds[kind] += duration
    return {kind: seconds[kind] for kind in (*KINDS.values(), "other") if seconds[kind] >= 0.5}


def main():
    found = list(actions(sys.argv[1]))
    for kind in (*KINDS.values(), "other"):
        mine = sorted(((seconds, what) for k, what, seconds in found if k == kind), reverse=True)
        if mine:
            print(f"{kind}: {len(mine)} actions, {sum(seconds for seconds, _ in mine):.0f} s")
            for seconds, what in mine[:LONGEST]:
                print(f"  {seconds:7.1f} s  {what}")


if __name__ == "__main__":
    main()
