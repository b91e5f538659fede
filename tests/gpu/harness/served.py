"""Programs that measure steps, and answer each request on a line of its own."""
import re
import subprocess
import threading

TIMEOUT = 60


def rate_in(said):
    """Images per second, or None where a program does not say."""
    found = re.search(r"images_per_s=([0-9.]+)", said)
    return float(found.group(1)) if found else None


class Served:
    """Starts once, since that takes longer than a measurement, and anew after a failure."""

    def __init__(self, programs, command):
        self.programs = programs
        self.command = command
        self.process = None

    def rate(self, *request):
        """None if it ends, or does not answer: then it is ended."""
        rate = rate_in(self.ask(*request))
        if rate is None:
            self.programs.tell(f"{self.command}: no answer to {request}")
            self.close()
        return rate

    def ask(self, *request):
        """A line, or what there is of it."""
        if self.process is None:
            self.start()
        deadline = threading.Timer(self.programs.time_for(TIMEOUT), self.process.kill)
        deadline.start()
        try:
            self.process.stdin.write(" ".join(map(str, request)) + "\n")
            self.process.stdin.flush()
            return self.process.stdout.readline().strip()
        except BrokenPipeError:
            return ""
        finally:
            deadline.cancel()

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
