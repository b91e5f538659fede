"""Counts the results of a `bazel test` or `bazel build` from its build events and the tests' XML
files. For a test program that died before it could write an XML file, it reads the program's
log."""
import dataclasses
import json
import pathlib
import re
import urllib.parse
import xml.etree.ElementTree


@dataclasses.dataclass
class Results:
    """The results of a command. A failure is a target and, where it is known, the test case in it.
    `seconds` holds seconds of work by kind, if build_profile.py has read them from a profile."""
    passed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)  # (target, test case or "")
    seconds: dict = dataclasses.field(default_factory=dict)


def case_outcomes(path):
    """Yields (name, "passed" | "failed" | "skipped") for each test case in a test.xml. The name is
    empty if Bazel wrote the file because the program did not: no filter finds that case."""
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue  # The case is disabled or filtered out.
        name = f"{case.get('classname')}.{case.get('name')}" if case.get("classname") else ""
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed"
        elif case.find("skipped") is not None:
            yield name, "skipped"
        else:
            yield name, "passed"


# The lines that GoogleTest prints when a case begins and when it has ended.
BEGUN = re.compile(r"\[ RUN      \] (\S+)$")
ENDED = re.compile(r"\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+).* \(\d+ ms\)$")
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def logged_outcomes(text):
    """Yields the same as case_outcomes, from the log of a GoogleTest program. A case that has not
    ended is the one in which the program died or was stopped by a timeout."""
    begun = None
    for line in text.splitlines():
        if match := BEGUN.match(line):
            begun = match.group(1)
        elif match := ENDED.match(line):
            begun = None
            yield match.group(2), OUTCOMES[match.group(1)]
    if begun:
        yield begun, "failed"


def output_file(outputs, name):
    """Returns the path of the file of that name that a test left, or None if there is none."""
    uri = next((output["uri"] for output in outputs if output["name"] == name), None)
    path = uri and pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
    return path if path and path.exists() else None


def outcomes_of(test_result):
    """Returns the outcome of each case of one test program, or of one shard of it."""
    outputs = test_result.get("testActionOutput", [])
    path = output_file(outputs, "test.xml")
    try:
        outcomes = list(case_outcomes(path)) if path else []
    except xml.etree.ElementTree.ParseError:
        outcomes = []  # The program died while it wrote.
    log = output_file(outputs, "test.log")
    if log and not any(name for name, _ in outcomes):
        logged = list(logged_outcomes(log.read_text(encoding="utf-8", errors="replace")))
        outcomes = logged or outcomes
    return outcomes


def add_target(target, test_result, results):
    """Adds the cases of one test program. A failure outside of any case counts as one, too."""
    failures_before = len(results.failures)
    for name, outcome in outcomes_of(test_result):
        if outcome == "failed":
            results.failures.append((target, name))
        elif outcome == "skipped":
            results.skipped += 1
        else:
            results.passed += 1
    if test_result["status"] not in ("PASSED", "FLAKY") and len(results.failures) == failures_before:
        results.failures.append((target, ""))


def read_results(events_path, exit_code):
    """Returns the results of the Bazel command that wrote `events_path` and ended with
    `exit_code`."""
    results = Results()
    attempts = {}  # By label and shard: only the last attempt of a test counts.
    for line in pathlib.Path(events_path).read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if "testResult" in event:
            test = event["id"]["testResult"]
            attempts[test["label"], test.get("shard", 0)] = event["testResult"]
        if "targetCompleted" in event["id"]:
            target = event["id"]["targetCompleted"]["label"]
            was_run = any(label == target for label, _ in attempts)
            if not event.get("completed", {}).get("success") and not was_run:
                results.failures.append((target, ""))
    for (target, _), test_result in sorted(attempts.items(), key=lambda item: item[0]):
        add_target(target, test_result, results)
    if exit_code != 0 and not results.failures:
        results.failures.append(("", ""))
    return results
