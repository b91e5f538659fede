#!/usr/bin/env python3
"""Writes the report: a file for each part, written after each row, and one page made from all of
them.

    report.py DIR     prints the page of the parts in DIR
"""
import datetime
import json
import pathlib
import shlex
import sys

# The parts in the order in which they run: the most important come first.
PARTS = ("parity", "steps", "cluster", "training", "memcheck", "racecheck", "synccheck")


def table(head, rows):
    """Returns the lines of a Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


class Section:
    """The results of one part. Everything added is in the file when the call returns, since the
    machine may be taken away at any time."""

    def __init__(self, out, part, title, head, facts):
        self.out = out
        self.part = part
        self.said = {"title": title, "head": head, "rows": [], "notes": [], "failures": [],
                     "ended": False, "facts": facts}
        self.save()

    @property
    def failed(self):
        return bool(self.said["failures"]) or not self.said["ended"]

    def add(self, *cells):
        self.said["rows"].append(cells)
        print(*cells, flush=True)
        self.save()

    def fail(self, what):
        self.said["failures"].append(what)
        print(f"FAILED: {what}", flush=True)
        self.save()

    def note(self, text):
        self.said["notes"].append(text)
        self.save()

    def end(self):
        self.said["ended"] = True
        self.save()

    def save(self):
        write(self.out / f"{self.part}.json", json.dumps(self.said, indent=1) + "\n")
        write(self.out / "RESULTS.md", page(self.out))


def write(path, text):
    """Writes the whole file or nothing."""
    new = path.with_suffix(path.suffix + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def facts_of(programs, gpu, argv):
    """Returns the circumstances in which a part ran."""
    now = datetime.datetime.now(datetime.timezone.utc)
    return [f"{gpu['name']} ({gpu['count']}, {gpu['memory']})", f"driver {gpu['driver']}",
            f"{now:%Y-%m-%d %H:%M} UTC", f"commit {programs.commit}", programs.processor(),
            "`tests/gpu/run.sh " + shlex.join(argv) + "`"]


def lines_of(said):
    state = "" if said["ended"] else ": not finished"
    verdict = ": FAILED" if said["failures"] else state
    lines = ["", f"## {said['title']}{verdict}", "", " · ".join(said["facts"]), ""]
    lines += table(said["head"], said["rows"])
    lines += ["", *(f"- {failure}" for failure in said["failures"])] if said["failures"] else []
    for note in said["notes"]:
        lines += ["", note]
    return lines


def page(folder):
    lines = ["# Slipstream on a GPU", "", "Written by `tests/gpu/run.sh`. Only figures of one section "
             "are of one run."]
    for part in PARTS:
        path = folder / f"{part}.json"
        if path.exists():
            lines += lines_of(json.loads(path.read_text(encoding="utf-8")))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    print(page(pathlib.Path(sys.argv[1])), end="")
