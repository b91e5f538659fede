"""Checks parity with the CPU, and runs compute-sanitizer."""
import json
import shutil

TESTS = ("kernel_parity_test", "plan_parity_test", "large_parity_test", "group_parity_test")

# Some cases of these programs need more GPUs than the machine may have.
MAY_SKIP = ("group_parity_test",)

# Under the sanitizer a kernel takes some hundred times as long, so each kernel and each kind of
# node runs only once. Groups are left out: the sanitizer would check all kernels that NCCL loads,
# which are not ours, and our kernels in groups are the same as in plans.
SANITIZED = {"kernel_parity_test": "*",
             "plan_parity_test": ":".join((*(f"*Derivative*/{net}" for net in (
                 "Dense*", "Mse*", "MaxPoolCeil", "AveragePoolCeil", "DropoutOfImage")),
                 "*Revoked*"))}

# Only our own kernels are checked. Those of libraries take long, and some of them look faulty but
# are not.
OURS = ("--kernel-name", "kns=slipstream")
# Errors of the runtime's calls are checked where the calls are made. Libraries make calls that may
# fail.
OPTIONS = {"memcheck": (*OURS, "--report-api-errors", "no"), "racecheck": OURS, "synccheck": OURS}
PARITY_TIMEOUT = 300
SANITIZER_TIMEOUT = 400


class Cases:
    """The results of the cases of a GoogleTest program."""

    def __init__(self, programs, name, command, timeout):
        result = programs.scratch / f"{name}.json"
        result.unlink(missing_ok=True)
        status, self.said = programs.run([*command, f"--gtest_output=json:{result}"], timeout)
        self.passed, self.failed, self.skipped = 0, [], 0
        if result.exists():
            self.count(json.loads(result.read_text(encoding="utf-8")))
        else:
            self.passed = self.said.count("[       OK ] ")  # Passed before it ended.
        if not self.failed and (status != 0 or not result.exists()):
            self.failed.append(f"the program itself (status {status})")

    def count(self, result):
        for suite in result["testsuites"]:
            for case in suite["testsuite"]:
                if case.get("failures"):
                    self.failed.append(f"{suite['name']}.{case['name']}")
                elif case.get("result") == "SKIPPED":
                    self.skipped += 1
                elif case.get("result") == "COMPLETED":
                    self.passed += 1

    def judge(self, name, section):
        """Reports failures to the section. A program that ran no case fails, too."""
        for case in self.failed:
            section.fail(f"{name}: {case}")
        if not self.failed and self.passed == 0:
            section.fail(f"{name}: no case ran")
        elif self.skipped and name not in MAY_SKIP:
            section.fail(f"{name}: {self.skipped} cases were skipped")
        else:
            return
        print(self.said[-6000:], flush=True)


def parity(programs, _, section):
    for name in TESTS:
        cases = Cases(programs, name, [programs.program(name)], PARITY_TIMEOUT)
        section.add(name, cases.passed, len(cases.failed), cases.skipped)
        cases.judge(name, section)


def checker():
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def sanitizer(tool):
    """Returns the part that runs this tool of the sanitizer."""
    def check(programs, _, section):
        for name, cases in SANITIZED.items():
            command = [checker(), "--tool", tool, *OPTIONS[tool], "--error-exitcode", "99",
                       programs.program(name), f"--gtest_filter={cases}"]
            done = Cases(programs, name, command, SANITIZER_TIMEOUT)
            section.add(name, done.passed, len(done.failed))
            done.judge(name, section)
    return check
