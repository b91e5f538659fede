#!/usr/bin/env python3
"""Copies a source of the shard's core into a namespace of its own, with one line changed.

Usage: mutate.py NAMESPACE SOURCE TARGET [FROM TO]
Fails where FROM is not in the source exactly once: then the planted bug has lost its place.
"""
import re
import sys


def main():
    namespace, source, target, *change = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    if change:
        before, after = change
        if text.count(before) != 1:
            sys.exit(f"{source}: the planted bug `{namespace}` replaces `{before}`, which is there "
                     f"{text.count(before)} times; say in tests/simulation/BUILD what to replace")
        text = text.replace(before, after)
    text = text.replace("namespace slipstream {", f"namespace slipstream::{namespace} {{")
    text = text.replace("server/core/shard_core.h", "tests/simulation/mutated/shard_core.h")
    text = re.sub(r"SLIPSTREAM_SERVER_CORE_SHARD_CORE_H_",
                  "SLIPSTREAM_TESTS_SIMULATION_MUTATED_SHARD_CORE_H_", text)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
