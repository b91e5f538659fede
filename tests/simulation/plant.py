#!/usr/bin/env python3
"""Copies sources and plants bugs in them: planted_bugs.bzl says how a bug is described.

Usage: plant.py --sources SOURCE... --targets TARGET... --changes [PATH BUG BEFORE AFTER]...

Writes only sources with bugs, and empty files behind them: the libraries have the others. A source is
a file of the project, or several that are compiled as one: first their headers, and then each after a
line `#line 1 "PATH"`. Fails if BEFORE is not in the file PATH exactly once: the bug then has to be adapted.
"""
import argparse
import re
import sys

PREFIX = '#include "tests/simulation/planted.h"\n'
FILE = re.compile(r'^#line 1 "(.+)"\n', re.M)


def files_of(path):
    """Returns the texts of the files that a source is made of, by their paths. What precedes them
    has no path."""
    with open(path, encoding="utf-8") as source:
        pieces = FILE.split(source.read())
    if len(pieces) == 1:
        return {path: pieces[0]}
    return {"": pieces[0]} | dict(zip(pieces[1::2], pieces[2::2]))


def plant(files, path, bug, before, after):
    if path not in files:
        sys.exit(f"{path}, in which {bug} is planted, is in no source; say in SOURCES of "
                 "tests/simulation/planted_bugs.bzl which has it")
    count = files[path].count(before)
    if count != 1:
        sys.exit(f"{path}: the planted bug {bug} replaces `{before}`, which is there {count} times; "
                 "say in tests/simulation/planted_bugs.bzl what to replace")
    files[path] = files[path].replace(before, after.replace("PLANTED", f'IsPlanted("{bug}")'))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sources", nargs="+")
    parser.add_argument("--targets", nargs="+")
    parser.add_argument("--changes", nargs="+")
    arguments = parser.parse_args()
    sources = [files_of(path) for path in arguments.sources]
    for change in zip(*[iter(arguments.changes)] * 4):
        files = next((files for files in sources if change[0] in files), {})
        plant(files, *change)
    planted = [files for files in sources if any("IsPlanted(" in text for text in files.values())]
    if len(planted) > len(arguments.targets):
        sys.exit(f"bugs are planted in {len(planted)} sources; raise SOURCES_MAX in "
                 "tests/simulation/planted_bugs.bzl")
    for target in arguments.targets:
        files = planted.pop() if planted else {}
        with open(target, "w", encoding="utf-8") as made:
            made.write(PREFIX)
            for path, text in files.items():
                made.write((f'#line 1 "{path}"\n' if path else "") + text)


if __name__ == "__main__":
    main()
