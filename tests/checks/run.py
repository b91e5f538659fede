#!/usr/bin/env python3
"""Runs the project's checks and tests one after another; tests/run.sh starts it.

A step that fails does not keep the later ones from running. The last lines show the result of each
step and the counts: every GoogleTest case of every configuration, every method of a Python test,
and one for each other check.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import bazel_results
import build_profile
import cuda_toolkit
import tidy

SHARED_DATA = ROOT.parent / "shared" / "data"

TESTS_TAGGED = 'attr(tags, "[\\[ ]({})[,\\]]", tests(//tests/...))'


class Terminated(KeyboardInterrupt):
    """A signal was sent to this process alone. Ctrl-C is different: the terminal sends it to its
    children too."""


def run(command):
    """Runs a command to its end, in the foreground. Returns its exit status."""
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        return process.wait()
    except KeyboardInterrupt as interrupt:
        if isinstance(interrupt, Terminated):
            process.send_signal(signal.SIGINT)
        process.wait()  # Bazel first ends the processes that it started.
        raise


def output_of(command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE,
                          text=True).stdout.split()


def run_check(command):
    results = bazel_results.Results()
    if run(command) == 0:
        results.passed = 1
    else:
        results.failures.append((" ".join(command), ""))
    return results


def run_tests(config, targets, *options):
    command = ["bazel", "test"] + ([f"--config={config}"] if config else [])
    with tempfile.TemporaryDirectory() as directory:
        events = pathlib.Path(directory) / "events.json"
        events.touch()
        profile = events.with_name("profile.gz")
        arguments = ["--keep_going", "--noshow_progress", f"--build_event_json_file={events}",
                     f"--profile={profile}", *options]
        if SHARED_DATA.is_dir():
            arguments.append(f"--test_env=SLIPSTREAM_SHARED_DATA={SHARED_DATA}")
        results = bazel_results.read_results(events, run([*command, *arguments, "--", *targets]))
        if profile.exists():
            results.seconds = build_profile.seconds_by_kind(profile)
    for i, (target, case) in enumerate(results.failures):
        case_filter = f" --test_filter={case}" if case else ""
        results.failures[i] = (f"{' '.join(command)}{case_filter} {target or ' '.join(targets)}", case)
    return results


def check_format():
    files = [str(path.relative_to(ROOT)) for path in tidy.files(ROOT)
             if path.suffix in tidy.CODE_SUFFIXES | {".ts"}]
    results = run_check(["clang-format", "--dry-run", "-Werror", *files])
    results.failures = [("clang-format -i THE FILES NAMED ABOVE", "") for _ in results.failures]
    return results


def is_shell_script(path):
    with path.open("rb") as file:
        return path.suffix == ".sh" or re.match(rb"#!.*\b(ba)?sh\n", file.readline()) is not None


def check_scripts():
    """Checks scripts for errors that compilers find in other languages."""
    files = list(tidy.files(ROOT))
    results = bazel_results.Results()
    for command, paths in (("shellcheck", filter(is_shell_script, files)),
                           ("pyflakes3", (path for path in files if path.suffix == ".py"))):
        one = run_check([command, *(str(path.relative_to(ROOT)) for path in paths)])
        results.passed += one.passed
        results.failures += [(f"{command} THE FILES NAMED ABOVE", "") for _ in one.failures]
    return results


def skip(step, reason):
    print(f"{step}: skipped: {reason}")
    return bazel_results.Results(skipped=1)


def tests_of(query):
    return output_of(["bazel", "query", "--noshow_progress", query])


def test_without_sanitizer():
    """Runs the tests that no other step of the usual run has. To compile a test twice takes minutes,
    so the tests with the tag asan run under AddressSanitizer alone, unless they have the tag plain."""
    elsewhere = tests_of(f"{TESTS_TAGGED.format('asan')} except {TESTS_TAGGED.format('plain')}")
    return run_tests("", [*ALL_BUT_INTEGRATION, *(f"-{test}" for test in elsewhere)])


def test_tagged(config, tags):
    tests = tests_of(TESTS_TAGGED.format(tags))
    return run_tests(config, tests) if tests else bazel_results.Results()


def test_with_toolkit(config):
    """Runs tests that need the toolkit's headers: on a GPU, and on a simulated one."""
    if reason := cuda_toolkit.reason_against():
        return skip(config, reason)
    return run_tests(config, [*tests_of(TESTS_TAGGED.format(config)), "//worker:ps_worker"])


def torch_of(python):
    """Returns the version of PyTorch that an interpreter has, or "none" and why."""
    try:
        found = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], check=False,
                               capture_output=True, text=True)
    except OSError as error:
        return f"none ({error.strerror})"
    return found.stdout.strip() or f"none ({found.stderr.strip().splitlines()[-1]})"


def test_with_current_torch():
    """Runs the tests that use PyTorch again, with a current one: `integration` runs them with the
    system's."""
    versions = {python: torch_of(python) for python in (SYSTEM_PYTHON, TORCH_PYTHON)}
    for python, version in versions.items():
        print(f"PyTorch of {python}: {version}", flush=True)
    version = versions[TORCH_PYTHON]
    if version.startswith("none"):
        return skip("torch", f"PyTorch of {TORCH_PYTHON}: {version}; deploy/setup.sh --dev installs it")
    # Bazel takes no results of another version from its cache.
    return run_tests("", tests_of(TESTS_TAGGED.format("torch")), f"--test_env=TORCH={version}",
                     f"--test_env=SLIPSTREAM_PYTHON={TORCH_PYTHON}", *PROCESSES_SIDE_BY_SIDE)


def run_clang_tidy(*options):
    built = run_check(["bazel", "build", "--noshow_progress", "//proto/..."])  # Makes the headers.
    return built if built.failures else run_check(
        ["python3", "tests/checks/clang_tidy.py", *options])


def simulate_many():
    """Runs seeds that no run has had before, unlike the seeds of the test, and prints the
    command."""
    first = int(time.time()) // 60 * SEEDS
    command = ["bazel", "run", "--noshow_progress", "//tests/simulation:simulate", "--",
               "--seed", str(first), "--seeds", str(SEEDS)]
    print(" ".join(command), flush=True)
    return run_check(command)


def run_faults(*options):
    """Runs real clusters through faults. Each scenario counts as a case."""
    results = bazel_results.Results()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "results.json"
        command = ["tests/faults/run.sh", *options]
        code = run([*command, "--results", str(path)])
        scenarios = (json.loads(path.read_text(encoding="utf-8"))["scenarios"] if path.exists()
                     else [])
    results.passed = sum(one["outcome"] == "passed" for one in scenarios)
    results.skipped = sum(one["outcome"] == "skipped" for one in scenarios)
    results.failures = [(one["repeat"], one["name"]) for one in scenarios
                        if one["outcome"] == "failed"]
    if code != 0 and not results.failures:
        results.failures.append((" ".join(command), ""))
    return results


SEEDS = 20_000

SYSTEM_PYTHON = "/usr/bin/python3"
# Made by deploy/setup.sh --dev.
TORCH_PYTHON = str(pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
                   / "slipstream" / "python" / "bin" / "python3")

# Tests with processes wait for a third of their time. Each asks for two processors.
PROCESSES_SIDE_BY_SIDE = ("--jobs=HOST_CPUS*1.5", "--local_cpu_resources=HOST_CPUS*3")

ALL_BUT_INTEGRATION = ["//...", "-//tests/integration/..."]

STEPS = {
    "format": check_format,
    "scripts": check_scripts,
    "tidy": lambda: run_check(["python3", "tests/tidy.py"]),
    "tidy_test": lambda: run_check(["python3", "tests/tidy_test.py", "--quiet"]),
    "results_test": lambda: run_check(["python3", "tests/checks/bazel_results_test.py", "--quiet"]),
    "quick_test": lambda: run_tests("", ["//..."], "--test_size_filters=small,medium"),
    "test": test_without_sanitizer,
    "test_all": lambda: run_tests("", ALL_BUT_INTEGRATION),
    "integration": lambda: run_tests("", ["//tests/integration/..."], *PROCESSES_SIDE_BY_SIDE),
    "torch": test_with_current_torch,
    "faults": lambda: run_faults("--quick"),
    "faults_long": lambda: run_faults("--long"),
    "cuda": lambda: test_with_toolkit("cuda"),
    "simulated_gpu": lambda: test_with_toolkit("simulated_gpu"),
    "asan": lambda: test_tagged("asan", "core|asan"),
    "tsan": lambda: test_tagged("tsan", "core"),
    "separate": lambda: run_check(["bazel", "build", "--noshow_progress", "--config=separate",
                                   "//..."]),
    "clang_tidy": run_clang_tidy,
    "clang_tidy_each": lambda: run_clang_tidy("--each"),
    "simulation": simulate_many,
}
QUICK = ("format", "scripts", "tidy", "tidy_test", "results_test", "quick_test", "clang_tidy")
USUAL = ("format", "scripts", "tidy", "tidy_test", "results_test", "test", "integration", "torch",
         "faults", "cuda", "simulated_gpu", "asan", "tsan", "clang_tidy")
# Some steps of a night do more of what another step does.
LONGER = {"test": "test_all", "faults": "faults_long", "clang_tidy": "clang_tidy_each"}
LONG = (*(LONGER.get(name, name) for name in USUAL), "separate", "simulation")


def processor_seconds():
    """Returns how long the processors of this machine have been busy since it was started."""
    times = pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, interrupts, soft_interrupts = map(int, times[:7])
    return (user + nice + system + interrupts + soft_interrupts) / os.sysconf("SC_CLK_TCK")


def run_step(name):
    """Runs one step. An error that keeps it from running counts as its failure."""
    print(f"\n=== {name}", flush=True)
    started, busy = time.monotonic(), processor_seconds()
    try:
        results = STEPS[name]()
    except (OSError, subprocess.CalledProcessError) as error:
        print(error)
        results = bazel_results.Results(failures=[(f"tests/run.sh --only {name}", "")])
    line = (f"=== {name}: {results.passed} passed, {len(results.failures)} failed, "
            f"{results.skipped} skipped, {time.monotonic() - started:.0f} s, "
            f"processors {processor_seconds() - busy:.0f} s")
    if results.seconds:
        line += " (" + ", ".join(f"{k} {v:.0f} s" for k, v in results.seconds.items()) + ")"
    print(line, flush=True)
    return results, line


def print_failures(failed):
    print("\nFailed; the command that repeats each:")
    for step, repeat, case in failed:
        print(f"  {step}{': ' + case if case else ''}\n    {repeat}")
    print()


def parse_arguments():
    """Returns what the command line asks for, with `steps` by name."""
    parser = argparse.ArgumentParser(
        prog="tests/run.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Installs what is missing (deploy/setup.sh --dev), then runs the checks and tests.",
        epilog="Also: --no-setup   do not look for missing packages")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--quick", action="store_const", const=QUICK, dest="steps",
                        help="what is worth waiting for before a commit: " + ", ".join(QUICK))
    choice.add_argument("--long", action="store_const", const=LONG, dest="steps",
                        help="also what is worth a night: " + ", ".join(
                            step for step in LONG if step not in USUAL))
    choice.add_argument("--only", metavar="STEP,...", type=lambda names: names.split(","), dest="steps",
                        help="some of: " + ", ".join(STEPS))
    parser.add_argument("--minutes", type=float, metavar="N",
                        help="warn when two thirds of so many minutes have gone")
    parser.add_argument("--setup-seconds", type=float, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.steps = arguments.steps or USUAL
    for name in arguments.steps:
        if name not in STEPS:
            parser.error(f"unknown step {name}; there are: {', '.join(STEPS)}")
    return arguments


def time_line(seconds, minutes_allowed):
    """Returns what the last lines say about the time that the whole run took."""
    line = f"=== all: {seconds:.0f} s"
    if minutes_allowed and seconds / 60 > minutes_allowed * 2 / 3:
        line += f"; WARNING: {seconds / 60:.0f} of the {minutes_allowed:.0f} minutes allowed"
    return line


def main():
    arguments = parse_arguments()
    started = time.monotonic() - arguments.setup_seconds
    total = bazel_results.Results()
    failed, lines = [], [f"=== setup: {arguments.setup_seconds:.0f} s"]
    for name in arguments.steps:
        results, line = run_step(name)
        lines.append(line)
        total.passed += results.passed
        total.skipped += results.skipped
        failed += [(name, repeat, case) for repeat, case in results.failures]
    if failed:
        print_failures(failed)
    print("", *lines, time_line(time.monotonic() - started, arguments.minutes), sep="\n")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {len(failed)} failed{skipped}")
    return 1 if failed else 0


def stop(*_):
    raise Terminated


if __name__ == "__main__":
    os.chdir(ROOT)
    signal.signal(signal.SIGTERM, stop)
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        sys.exit(130)
