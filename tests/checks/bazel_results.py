"""Counts what a `bazel test` or `bazel build` did, from its build events and the tests' XML files; from
the log of a test program that died before it could write one."""
import dataclasses
import json
import pathlib
import re
import urllib.parse
import xml.etree.ElementTree


@dataclasses.dataclass
class Results:
    """What ran; each failure is a target and, where it is known, the test case in it. `seconds` are
    those of work by its kind, where Bazel told them: build_profile.py."""
    passed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)  # of (target, test case or "")
    seconds: dict = dataclasses.field(default_factory=dict)


def case_outcomes(path):
    """Yields (name, "passed" | "failed" | "skipped") for each test case that a test.xml tells of. The
    name is empty where Bazel wrote the file for a program that did not: no filter finds its case."""
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        if case.get("status") == "notrun":
            continue  # Disabled or filtered out.
        name = f"{case.get('classname')}.{case.get('name')}" if case.get("classname") else ""
        if case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed"
        elif case.find("skipped") is not None:
            yield name, "skipped"
        else:
            yield name, "passed"


# As GoogleTest prints a case that begins and one that has ended.
BEGUN = re.compile(r"\[ RUN      \] (\S+)$")
ENDED = re.compile(r"\[ *(OK|FAILED|SKIPPED) *\] ([^\s,]+).* \(\d+ ms\)$")
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def logged_outcomes(text):
    """What case_outcomes yields, from the log of a GoogleTest program: a case that has not ended is the
    one that the program died in, or was stopped in after too long."""
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
    """The file of that name that a test left; None if there is none."""
    uri = next((output["uri"] for output in outputs if output["name"] == name), None)
    path = uri and pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
    return path if path and path.exists() else None


def outcomes_of(test_result):
    """What came of each case of one test program, or of one shard of it."""
    outputs = test_result.get("testActionOutput", [])
    path = output_file(outputs, "test.xml")
    try:
        outcomes = list(case_outcomes(path)) if path else []
    except xml.etree.ElementTree.ParseError:
        outcomes = []  # It died while it wrote.
    log = output_file(outputs, "test.log")
    if log and not any(name for name, _ in outcomes):
        logged = list(logged_outcomes(log.read_text(encoding="utf-8", errors="replace")))
        outcomes = logged or outcomes
    return outcomes


def add_target(target, test_result, results):
    """Adds one test program's cases; it may also have failed outside any of them."""
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
    """The results of the Bazel command that wrote `events_path` and ended with `exit_code`."""
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
