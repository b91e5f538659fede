"""Counts what a `bazel test` or `bazel build` did, from its build events and the tests' XML files."""
import dataclasses
import json
import pathlib
import urllib.parse
import xml.etree.ElementTree


@dataclasses.dataclass
class Results:
    """What ran; each failure is a target and, where it is known, the test case in it."""
    passed: int = 0
    skipped: int = 0
    failures: list = dataclasses.field(default_factory=list)  # of (target, test case or "")


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


def xml_of(outputs):
    uri = next((output["uri"] for output in outputs if output["name"] == "test.xml"), None)
    path = uri and pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
    return path if path and path.exists() else None


def add_target(target, test_result, results):
    """Adds one test program's cases; it may also have failed outside any of them."""
    failures_before = len(results.failures)
    path = xml_of(test_result.get("testActionOutput", []))
    try:
        outcomes = list(case_outcomes(path)) if path else []
    except xml.etree.ElementTree.ParseError:
        outcomes = []  # It died while it wrote.
    for name, outcome in outcomes:
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
    attempts = {}  # Only the last attempt of a test counts.
    for line in pathlib.Path(events_path).read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if "testResult" in event:
            attempts[event["id"]["testResult"]["label"]] = event["testResult"]
        if "targetCompleted" in event["id"]:
            target = event["id"]["targetCompleted"]["label"]
            if not event.get("completed", {}).get("success") and target not in attempts:
                results.failures.append((target, ""))
    for target, test_result in sorted(attempts.items()):
        add_target(target, test_result, results)
    if exit_code != 0 and not results.failures:
        results.failures.append(("", ""))
    return results
