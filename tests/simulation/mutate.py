#!/usr/bin/env python3
"""Copies a source file and replaces some of its text.

Usage: mutate.py SOURCE TARGET FROM TO [FROM TO ...]
Fails if FROM is not in the source exactly once: the planted bug then has to be adapted.
"""
import sys


def main():
    source, target, *changes = sys.argv[1:]
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for before, after in zip(changes[::2], changes[1::2]):
        if text.count(before) != 1:
            sys.exit(f"{source}: a planted bug replaces `{before}`, which is there "
                     f"{text.count(before)} times; say in tests/simulation/planted_bugs.bzl what to "
                     "replace")
        text = text.replace(before, after)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
