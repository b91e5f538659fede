"""Runs programs that measure steps, and that answer each request with one line."""
import re
import subprocess
import threading

TIMEOUT = 60
START_TIMEOUT = 240  # PyTorch alone may take a minute to load.


def rate_in(said):
    """Returns the images per second, or None if the text does not contain them."""
    found = re.search(r"images_per_s=([0-9.]+)", said)
    return float(found.group(1)) if found else None


class Served:
    """Starts a program once, since a start takes longer than a measurement, and again after a
    failure."""

    def __init__(self, programs, command):
        self.programs = programs
        self.command = command
        self.process = None
        self.has_answered = False

    def rate(self, *request):
        """Returns the images per second, or None if there is no answer."""
        answer = self.ask(*request)
        rate = rate_in(answer)
        if answer and rate is None:
            self.programs.tell(f"{self.command}: not a rate: {answer}")
        return rate

    def ask(self, *request):
        """Returns the program's answer. If the program ends or takes too long, ends it and returns
        ""."""
        if self.process is None:
            self.start()
        timeout = TIMEOUT if self.has_answered else START_TIMEOUT
        deadline = threading.Timer(self.programs.time_for(timeout), self.process.kill)
        deadline.start()
        try:
            self.process.stdin.write(" ".join(map(str, request)) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline().strip()
        except BrokenPipeError:
            answer = ""
        finally:
            deadline.cancel()
        self.has_answered = bool(answer)
        if not answer:
            self.programs.tell(f"{self.command}: no answer to {request}")
            self.close()
        return answer

    def start(self):
        with self.programs.log.open("a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=log, text=True,
                                            env=self.programs.environment())

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.process = None
