#!/usr/bin/env python3
"""Builds targets with Bazel, and shows in one line how far that is and how long it will take.

Usage: deploy/build.py [BAZEL'S OPTIONS] TARGET...

The line goes to stderr: on a terminal it is written over and over, elsewhere twice a minute. Warnings
and errors of Bazel and of the compilers are shown as they are. Exits with Bazel's exit status.
"""
import os
import re
import signal
import subprocess
import sys
import time

# What the programs' first build took on the machine of tests/README.md; README.md says it in minutes.
FIRST_BUILD_CPU_SECONDS = 360
LINE_INTERVAL_SECONDS = 30  # Where stderr is no terminal.
# Nothing is foretold from less.
SECONDS_MIN = 15

STEP = re.compile(r"\[([\d,]+) / ([\d,]+)\]")
# What Bazel says while all is well.
CHATTER = re.compile(r"(INFO|Loading|Analyzing|Starting local Bazel|Target .* up-to-date|  bazel-bin/|"
                     r"\.\.\. )|\s*$")
# Where .bazelrc lets Bazel keep what any clone has built.
DISK_CACHE = os.path.expanduser("~/.cache/slipstream-bazel")


def duration(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{max(seconds, 1):.0f} s"


class ProgressLine:
    """The line that says how far the build is. Bazel counts steps, most of which compile a file, and
    learns of some only on the way: so the first build takes no less than `seconds_expected`."""

    def __init__(self, seconds_expected):
        self.seconds_expected = seconds_expected
        self.started = None  # When the first step was counted, and how many steps were done by then.
        self.shown = 0.0
        self.is_open = False

    def show(self, done, total):
        now = time.monotonic()
        self.started = self.started or (now, done)
        interval = 0.5 if sys.stderr.isatty() else LINE_INTERVAL_SECONDS
        if now - self.shown < interval:
            return
        self.shown = now
        elapsed, steps = now - self.started[0], done - self.started[1]
        text = f"built {done} of {total} parts"
        if elapsed > SECONDS_MIN and 0 < steps and done < total:
            left = max(elapsed / steps * (total - done), self.seconds_expected - elapsed)
            text += f", about {duration(left)} left"
        self.write(text)

    def write(self, text):
        terminal = sys.stderr.isatty()
        sys.stderr.write(f"\r{text}\033[K" if terminal else f"{text}\n")
        sys.stderr.flush()
        self.is_open = terminal

    def close(self):
        """Ends the line, so that other text can follow."""
        if self.is_open:
            sys.stderr.write("\r\033[K")
            self.is_open = False


def seconds_expected():
    """Returns how long a first build takes, and 0 for any other."""
    if os.path.exists("bazel-bin") or os.path.exists(DISK_CACHE):
        return 0
    return FIRST_BUILD_CPU_SECONDS / (os.cpu_count() or 1)


def announce(targets, seconds):
    text = "building " + ", ".join(re.split("[/:]", target)[-1] for target in targets)
    if seconds:
        text += f"; the first build takes about {duration(seconds)} on {os.cpu_count()} processors"
    print(text, file=sys.stderr, flush=True)


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if sys.argv[1:] in ([], ["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    seconds = seconds_expected()
    announce([word for word in sys.argv[1:] if word.startswith(("//", ":"))], seconds)
    command = ["bazel", "build", "--curses=no", "--color=no", "--show_progress_rate_limit=1",
               *sys.argv[1:]]
    try:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
    except FileNotFoundError:
        sys.exit("build: bazel is not on PATH; deploy/setup.sh installs it")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Bazel has it, too, and ends.
    line = ProgressLine(seconds)
    for text in process.stderr:
        if step := STEP.match(text):
            line.show(*(int(number.replace(",", "")) for number in step.groups()))
        elif not CHATTER.match(text):
            line.close()
            sys.stderr.write(text)
    line.close()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
