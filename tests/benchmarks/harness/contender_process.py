"""A process of a contender: reads commands from stdin, answers on stdout, and writes a log."""
import os
import select
import subprocess
import time

START_S = 120     # Until a process is ready; PyTorch takes ten seconds on a busy machine.
EXCHANGES_S = 300  # Until a command is done.
END_S = 10        # Between the end of its stdin and its own end.
LAST_LINES = 3


class ContenderFailed(Exception):
    """A contender cannot be measured. The text names its log. The others go on."""


class ContenderProcess:
    """Runs in `directory`. Every wait has a deadline. Not thread-safe."""

    def __init__(self, name, command, directory, environment=None):
        self.name = name
        self.log = directory / f"{name}.log"
        self.buffer = b""
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=log, bufsize=0, cwd=directory, env={**os.environ, **(environment or {})})

    def ask(self, line):
        try:
            self.process.stdin.write(line.encode() + b"\n")
        except OSError:
            raise self.failure("has ended") from None

    def answer(self, word, timeout):
        """Reads the next line, which must begin with `word`. Returns the rest as a list of
        words."""
        words = self.line(timeout).split()
        if not words or words[0] != word:
            raise self.failure(f"said \"{' '.join(words)}\" instead of {word}")
        return words[1:]

    def line(self, timeout):
        deadline = time.monotonic() + timeout
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise self.failure(f"said nothing for {timeout} s")
            piece = os.read(self.process.stdout.fileno(), 4096)
            if not piece:
                raise self.failure("has ended")
            self.buffer += piece
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode(errors="replace")

    def failure(self, what):
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
        return ContenderFailed("; ".join([f"{self.name} {what} (log: {self.log})", *lines]))

    def end(self):
        """Lets the process end by itself, and kills it if it does not."""
        self.process.stdin.close()
        for make in (lambda: None, self.process.terminate, self.process.kill):
            make()
            try:
                self.process.wait(timeout=END_S)
                break
            except subprocess.TimeoutExpired:
                pass
        self.process.stdout.close()
