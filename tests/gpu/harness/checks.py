"""Parity with the processor, and compute-sanitizer."""
import json
import shutil

import report

TESTS = ("kernel_parity_test", "plan_parity_test", "group_parity_test")

# Some of its cases need more GPUs than there may be.
MAY_SKIP = ("group_parity_test",)

# Under the sanitizer a kernel takes some hundred times as long: what every kernel and every node
# does once is enough. Not several GPUs: it runs one kernel after the other, and theirs wait for one
# another.
SANITIZED = {"kernel_parity_test": "*", "plan_parity_test": "*SmallNet*:*Revoked*",
             "group_parity_test": "*AgreesWithOneGpu/1"}

# Races and barriers of our own kernels: libraries' are theirs, and some look like faults.
OURS = ("--kernel-name", "kns=slipstream")
OPTIONS = {"memcheck": (), "racecheck": OURS, "synccheck": OURS}
TIMEOUT = 900


def cases_of(programs, name, command):
    """(passed, failed names, skipped) of a GoogleTest program, and what it printed."""
    result = programs.scratch / f"{name}.json"
    result.unlink(missing_ok=True)
    status, said = programs.run([*command, f"--gtest_output=json:{result}"], TIMEOUT)
    if not result.exists():
        return 0, [f"the program itself (status {status})"], 0, said
    passed, failed, skipped = 0, [], 0
    for suite in json.loads(result.read_text(encoding="utf-8"))["testsuites"]:
        for case in suite["testsuite"]:
            name = f"{suite['name']}.{case['name']}"
            if case.get("failures"):
                failed.append(name)
            elif case.get("result") == "SKIPPED":
                skipped += 1
            elif case.get("result") == "COMPLETED":
                passed += 1
    if status != 0 and not failed:
        failed.append(f"the program itself (status {status})")
    return passed, failed, skipped, said


def parity(programs, _):
    rows, failures = [], []
    for name in TESTS:
        passed, failed, skipped, said = cases_of(programs, name, [programs.program(name)])
        rows.append((name, passed, len(failed), skipped))
        failures += failed
        if failed:
            print(said)
        if skipped and not (name in MAY_SKIP and passed):
            failures.append(f"{skipped} cases of {name} were skipped")
    lines = report.table(["program", "passed", "failed", "skipped"], rows)
    return report.Section("Parity with the processor", lines + bullets(failures), bool(failures))


def sanitizer(programs, _):
    checker = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    rows, failures = [], []
    for tool in OPTIONS:
        for name in TESTS:
            command = [checker, "--tool", tool, *OPTIONS[tool], "--error-exitcode", "99",
                       programs.program(name), f"--gtest_filter={SANITIZED[name]}"]
            passed, failed, _, said = cases_of(programs, name, command)
            rows.append((tool, name, passed, len(failed)))
            failures += [f"{tool}: {case}" for case in failed]
            if failed:
                print(said[-6000:])
    lines = report.table(["tool", "program", "cases clean", "cases not"], rows)
    return report.Section("compute-sanitizer", lines + bullets(failures), bool(failures))


def bullets(failures):
    return ["", *(f"- {failure}" for failure in failures)] if failures else []
