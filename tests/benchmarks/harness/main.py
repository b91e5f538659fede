#!/usr/bin/env python3
"""Compares Slipstream with other programs that move models between processes.
tests/benchmarks/run.sh starts it after the build."""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile

ROOT = pathlib.Path(__file__).absolute().parents[3]
sys.path += [str(ROOT / "tests" / "integration"), str(ROOT / "tests" / "support")]

import build_plan
import builds_report
import durability_suite
import kernel_suite
import latency_suite
import python_suite
import readers_suite
import table
import training_suite
import transport_suite
from programs import OWN_BUILD, Build
from rounds import say
from suite import Suite

SUITES = {"transport": transport_suite, "kernels": kernel_suite, "latency": latency_suite,
          "python": python_suite, "readers": readers_suite, "training": training_suite,
          "durability": durability_suite}
EXAMPLES = """
Contenders take turns, round by round; a ratio is the median of the rounds' ratios, and the spread the
distance of the quartiles as a share of the median. GB/s counts both directions of all workers. What
is not installed or not built is skipped with a word; one that fails is named with its log, and the
others go on: the exit status is 1 then.

With --against the programs of another checkout of this repository take turns with those of this
one, and peers are left out. The ratio to the other build says how many times as fast this one is.
The last lines name each ratio that differs from 1 by more than its spread. DIR is built first, too;
`git worktree add DIR COMMIT` makes a checkout.
"""


def positive(kind):
    def parse(text):
        value = kind(text)
        if value <= 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return value
    return parse


# In turns of 0.4 s some contenders make only two exchanges of 64 MiB, and the quartiles of two
# workers at one server lay 27 to 43 % apart; in turns of 1.2 s it was 7 to 20 %.
TURN_S = 1.0


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="tests/benchmarks/run.sh", description="Measures Slipstream beside its peers.",
        epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true",
                        help="20 minutes: of transport only 64 MiB and sgd, and fewer rounds")
    parser.add_argument("--only", choices=list(SUITES), action="append",
                        help="one part; may be repeated (default: all)")
    parser.add_argument("--json", metavar="FILE", type=pathlib.Path,
                        help="write all rows there, as a list")
    parser.add_argument("--rounds", type=positive(int), help="of each comparison (quick 5, else 9)")
    parser.add_argument("--seconds", type=positive(float),
                        help="of one contender in one round (1)")
    parser.add_argument("--against", metavar="DIR", type=pathlib.Path,
                        help="compare with the build of another checkout, instead of with peers")
    parser.add_argument("--setup", action="store_true",
                        help="first install, with apt, what all contenders need")
    parser.add_argument("--targets", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.rounds = options.rounds or (5 if options.quick else 9)
    options.seconds = options.seconds or TURN_S
    options.only = options.only or list(SUITES)
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: {options.json} lies in no directory")  # Fail now, not at the end.
    if options.against:
        options.against = options.against.resolve()
        fault = build_plan.fault(options.against, options.only)
        if fault:
            parser.error(f"--against: {fault}")
        if options.rounds < 2:
            parser.error("--against: one round has no spread; take --rounds 2 or more")
    return options


def write_json(path, rows):
    """Writes the file whole or not at all: a run of an hour must not leave half of its figures."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def run_suites(suite):
    rows = []
    for name in suite.options.only:
        rows += SUITES[name].run(suite)
        if suite.options.json:
            write_json(suite.options.json, rows)
    return rows


def report(suite, rows):
    for name in suite.options.only:
        SUITES[name].print_table([row for row in rows if row["benchmark"] == name])
    print()
    for name, reasons in suite.skipped.items():
        print(f"{name} skipped: {'; '.join(sorted(reasons))}")
    for failure in suite.failed:
        print(f"FAILED {failure}")
    print(table.load_line(rows))
    if suite.options.against:
        print(builds_report.text(suite.options.against, [
            (f"{name} {SUITES[name].row_text(row)}", row)
            for name in suite.options.only for row in rows
            if row["benchmark"] == name and "ratio_to_other" in row]))


def end(number, _):
    """Ends the program on a signal. Ignores further signals, so that nothing interrupts the
    clean-up."""
    for further in (signal.SIGINT, signal.SIGTERM):
        signal.signal(further, signal.SIG_IGN)
    sys.exit(128 + number)


def main(arguments):
    options = parse_arguments(arguments)
    if options.targets:
        for root, targets in build_plan.plan(ROOT, options.against, options.only):
            print(f"{root}\t{' '.join(targets)}")
        return 0
    if options.json:
        options.json = options.json.absolute()
    os.chdir(ROOT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)
    builds = (OWN_BUILD, Build(options.against)) if options.against else (OWN_BUILD,)
    suite = Suite(options, pathlib.Path(tempfile.mkdtemp(prefix="slipstream-benchmarks-")), builds)
    try:
        report(suite, run_suites(suite))
    finally:
        if suite.failed:
            say(f"logs: {suite.directory}")
        else:
            shutil.rmtree(suite.directory, ignore_errors=True)
    return 1 if suite.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
