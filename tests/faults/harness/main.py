#!/usr/bin/env python3
"""Runs real clusters through faults; tests/faults/run.sh starts it after the build."""
import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).absolute().parents[3]
sys.path += [str(ROOT / "tests" / "integration"), str(ROOT / "tests" / "support")]

import disk_faults
import network
import network_faults
import operator_faults
import process_faults
from programs import scratch
from scenario import Report, Trial, counts_of
from totals import print_totals, totals_of

MODULES = (process_faults, operator_faults, network_faults, disk_faults)
SCENARIOS = {scenario.name: scenario for module in MODULES for scenario in module.scenarios()}
FAULTS = 10
# What every run of the tests does: 10 kills, 5 partitions, 5 drains, and one of each other kind.
QUICK = {"kills-synced-softsync": 4, "kills-synced-hardsync": 3, "kills-checkpoint-async": 3,
         "workers-synced-softsync": 2, "places-synced-hardsync": 2, "partitions-hardsync": 3,
         "partitions-softsync": 2, "drains-synced-softsync": 3, "drains-synced-hardsync": 2, "links-softsync": 3,
         "stops-workers-synced": 1, "stops-servers-synced": 1, "disk-full-synced": 1,
         "disk-read-only-synced": 1, "initialization-hardsync": 2, "rollback-synced": 1,
         "moved-synced-async": 1, "log-unread": 1}
# What is worth a night: 50 kills and more, 20 partitions, 50 stops, 50 drains.
LONG = {**{name: FAULTS for name in SCENARIOS}, "kills-synced-softsync": 50,
        "kills-synced-hardsync": 50, "partitions-softsync": 20,
        "stops-workers-synced": 25, "stops-servers-synced": 25,
        "drains-synced-softsync": 50, "disk-full-synced": 3, "disk-full-checkpoint": 3,
        "disk-read-only-synced": 3}
EXAMPLES = """
--only chooses scenarios by whole names, or by patterns such as 'kills-*'. All choices of a scenario
follow from its seed, but not their exact moments. Partitions, links and disks need root (or a user
who may be root in a namespace), nft and loop devices. What a machine lacks is named, and the
scenario counts as skipped.
"""


@dataclasses.dataclass
class Result:
    name: str
    outcome: str    # "passed", "failed" or "skipped"
    repeat: str     # The command that does the same again.
    report: Report
    seconds: float = 0.0

    def as_json(self):
        report = self.report
        return {"name": self.name, "outcome": self.outcome, "repeat": self.repeat,
                "seconds": self.seconds, "faults": report.kinds,
                "acknowledged": report.acknowledged, "lost": report.lost,
                "doubled": report.doubled, "remarks": report.remarks}


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog="tests/faults/run.sh", description="Runs real clusters through faults.",
        epilog=EXAMPLES + "\nScenarios: " + " ".join(SCENARIOS),
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0,
                        help="repeat the scenarios, each time with the next seed, for so long")
    parser.add_argument("--seed", type=int, help="the first seed (default: drawn)")
    parser.add_argument("--only", type=lambda names: names.split(","), metavar="NAME,...",
                        help="these scenarios (default: all)")
    parser.add_argument("--kills", type=int, metavar="N",
                        help=f"faults of each scenario, of whatever kind (default: {FAULTS})")
    parser.add_argument("--results", type=pathlib.Path, metavar="FILE",
                        help="write the result of each scenario and the totals there, as JSON")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_const", const=QUICK, dest="plan",
                        help="the part that tests/run.sh runs: a few minutes")
    choice.add_argument("--long", action="store_const", const=LONG, dest="plan",
                        help="the part that tests/run.sh --long runs: hours")
    options = parser.parse_args(arguments)
    options.plan = chosen(options.plan or {name: FAULTS for name in SCENARIOS}, options, parser)
    if options.seed is None:
        options.seed = int.from_bytes(os.urandom(4), "little")
    return options


def chosen(plan, options, parser):
    """Returns the faults of each chosen scenario, by name."""
    for pattern in options.only or ():
        if not fnmatch.filter(plan, pattern):
            parser.error(f"--only: no scenario is called {pattern}; there are: {', '.join(plan)}")
    return {name: options.kills or faults for name, faults in plan.items()
            if not options.only or any(fnmatch.fnmatch(name, pattern) for pattern in options.only)}


def run_one(name, seed, faults):
    """Runs one scenario, and says what it has found."""
    scenario = SCENARIOS[name]
    repeat = f"tests/faults/run.sh --only {name} --seed {seed} --kills {faults}"
    print(f"\n{name}: seed {seed}, {faults} faults", flush=True)
    reason = scenario.missing()
    if reason:
        print(f"{name}: skipped: {reason}", flush=True)
        return Result(name, "skipped", repeat, Report(remarks=[reason]))
    begun = time.monotonic()
    outcome = "passed"
    with scratch() as directory:
        trial = Trial(scenario, seed, faults, directory)
        try:
            scenario.run(trial)
        except Exception:  # Whatever has gone wrong, the other scenarios go on.
            outcome = "failed"
            traceback.print_exc()
    report = trial.report
    remarks = "; ".join([counts_of(report.kinds.elements()), *report.remarks])
    print(f"{name}: {outcome}: {report.faults} faults survived, {report.acknowledged} pushes "
          f"acknowledged, {report.lost} lost, {report.doubled} doubled; {remarks}\n"
          f"  again: {repeat}", flush=True)
    return Result(name, outcome, repeat, report, time.monotonic() - begun)


def run_all(options):
    end = time.monotonic() + options.seconds
    seed, results = options.seed, []
    while not results or time.monotonic() < end:
        for name, faults in options.plan.items():
            results.append(run_one(name, seed, faults))
            if options.results:  # An interrupted run leaves what it has found.
                write_results(options.results, results)
            if options.seconds and time.monotonic() >= end:
                break
        seed += 1
    return results


def print_table(results):
    print(f"\n{'scenario':30}{'':9}{'faults':>7}{'acknowledged':>14}{'lost':>6}{'doubled':>9}"
          f"{'s':>6}")
    for result in results:
        report = result.report
        print(f"{result.name:30}{result.outcome:9}{report.faults:7}{report.acknowledged:14}"
              f"{report.lost:6}{report.doubled:9}{result.seconds:6.0f}")
    counts = {outcome: sum(result.outcome == outcome for result in results)
              for outcome in ("passed", "failed", "skipped")}
    print_totals(totals_of(results))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    for result in results:
        if result.outcome == "failed":
            print(f"failed: {result.repeat}")
    print(f"{counts['passed']} scenarios passed, {counts['failed']} failed{skipped}")


def write_results(path, results):
    totals = {kind: dataclasses.asdict(total) for kind, total in totals_of(results).items()}
    path.write_text(json.dumps({"scenarios": [result.as_json() for result in results],
                                "totals": totals}, indent=1) + "\n", encoding="utf-8")


def main(arguments):
    options = parse_arguments(arguments)
    if options.results:
        options.results = options.results.absolute()
    reason = network.enter()
    if reason:
        print(reason)
    else:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    results = run_all(options)
    print_table(results)
    return 1 if any(result.outcome == "failed" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
