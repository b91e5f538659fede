"""The programs under test, and facts about the machine on which they run."""
import os
import pathlib
import re
import shlex
import signal
import site
import subprocess
import tarfile
import time


class OutOfTime(Exception):
    """The deadline of the whole run has come."""


def nvidia_packages():
    """Returns the folders of CUDA's libraries that Python packages have installed."""
    roots = site.getsitepackages()
    return [str(path) for root in roots for path in sorted(pathlib.Path(root).glob("nvidia/*/lib"))]


class Bundle:
    """An unpacked bundle. Its programs write files to `scratch`; everything that they print goes to
    `log`. `seconds`, if set, is how long all programs may take together."""

    def __init__(self, path, scratch, log, seconds=None):
        self.scratch = scratch
        self.log = log
        self.end = time.monotonic() + (seconds or float("inf"))
        if path.is_dir():
            self.root = path.resolve()
        else:
            with tarfile.open(path) as archive:
                archive.extractall(scratch)  # The archive is ours.
            self.root = next(scratch.iterdir())
        commit = self.root / "COMMIT"
        said = commit.read_text(encoding="utf-8").strip() if commit.exists() else ""
        self.commit = said or "unknown"

    def program(self, name):
        return str(self.root / "bin" / name)

    def environment(self):
        folders = [os.environ.get("LD_LIBRARY_PATH", ""), *nvidia_packages()]
        return {**os.environ, "LD_LIBRARY_PATH": ":".join(filter(None, folders))}

    def time_for(self, seconds):
        """Returns `seconds`, or the time that is left if it is less. Raises OutOfTime if almost
        none is left."""
        left = self.end - time.monotonic()
        if left < 1:
            raise OutOfTime
        return min(seconds, left)

    def run(self, command, timeout):
        """Returns the exit status and everything that the command printed. A command that hangs is
        killed with all its children, and fails."""
        timeout = self.time_for(timeout)
        self.tell("$ " + shlex.join(command))
        try:
            # The group of its own allows killing the whole. There is no session of its own, so that
            # whoever kills our session ends it, too.
            process = subprocess.Popen(command, cwd=self.scratch, env=self.environment(),
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       errors="replace", process_group=0)
        except OSError as error:
            self.tell(str(error))
            return 127, str(error)
        with process:
            try:
                said, status = process.communicate(timeout=timeout)[0], process.returncode
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                said = process.communicate()[0] + f"\nended after {timeout:.0f} s"
                status = 124
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
        self.tell(said)
        return status, said

    def tell(self, text):
        with self.log.open("a", encoding="utf-8") as log:
            log.write(text.rstrip("\n") + "\n")

    def keep_logs(self, folder):
        """Copies the logs of a run's processes before `scratch` is removed."""
        for path in sorted(folder.glob("logs/*.log")):
            self.tell(f"--- {path.name}\n" + path.read_text(encoding="utf-8", errors="replace"))

    @staticmethod
    def processor():
        found = re.search(r"model name\s*: (.*)",
                          pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        return f"{os.cpu_count()} cores of {found.group(1) if found else 'an unknown kind'}"


def gpu_facts():
    """Returns name, driver and memory of the first GPU, and the number of GPUs that programs see,
    or None if there is no GPU."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        said = subprocess.run(query, stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    lines = said.strip().splitlines()
    fields = [field.strip() for field in lines[0].split(",")] if lines else []
    if len(fields) != 3:
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    count = len(lines) if visible is None else min(len(lines), len(visible.split(",")))
    return {**dict(zip(("name", "driver", "memory"), fields)), "count": count}
