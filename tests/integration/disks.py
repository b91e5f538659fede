"""Disks of our own for the servers of a test: one that fills up, and one that turns read-only."""
import contextlib
import pathlib
import resource
import signal
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "support"))
from programs import wait_until

FILLER_BLOCK = bytes(1 << 20)


def _run(*command):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=60, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(command)} failed: {done.stdout.strip()}")


def _stands_still(pid):
    """Returns whether all threads of a process are stopped, also those that were in a call."""
    states = (task.read_text().rpartition(")")[2].split()[0]
              for task in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"))
    return all(state == "T" for state in states)


def limit_files(process, size):
    """Lets each write of a running process fail that would make a file larger than `size` bytes."""
    _, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size, hard))


class _Disk(contextlib.AbstractContextManager):
    """A file system of `size` bytes at `directory`, which is made. Mounting needs root."""

    def __init__(self, directory, size):
        self.directory = pathlib.Path(directory)
        self.size = size

    def __enter__(self):
        self.directory.mkdir()
        self._make()
        self._mount()
        return self

    def __exit__(self, *_):
        _run("umount", str(self.directory))
        self.directory.rmdir()

    @classmethod
    def why_not(cls, directory):
        """Returns why there can be no such disk; None if there can."""
        try:
            with cls(pathlib.Path(directory) / "probe", 16 << 20):
                return None
        except OSError as error:
            return str(error)

    def _make(self):
        """Makes what is to be mounted."""

    def _mount(self):
        raise NotImplementedError


class SmallDisk(_Disk):
    """A disk in memory (tmpfs)."""

    def _mount(self):
        _run("mount", "-t", "tmpfs", "-o", f"size={self.size}", "tmpfs", str(self.directory))

    def fill(self):
        """Takes all the room that is left."""
        with contextlib.suppress(OSError), \
                open(self.directory / "filler", "ab", buffering=0) as filler:
            while True:
                filler.write(FILLER_BLOCK)

    def fill_until(self, condition, what):
        """Takes all room until the condition holds, also what others make free meanwhile."""
        def look():
            self.fill()
            return condition()

        wait_until(look, what)

    def make_room(self):
        (self.directory / "filler").unlink()


class FailingDisk(_Disk):
    """An ext4 file system in a file. It can turn read-only while files are open, as file systems do
    when their device fails. Mounting needs a loop device, too."""

    def __init__(self, directory, size):
        super().__init__(directory, size)
        self.image = self.directory.with_suffix(".ext4")

    def _make(self):
        with open(self.image, "wb") as image:
            image.truncate(self.size)
        _run("mkfs.ext4", "-q", str(self.image))

    def _mount(self):
        _run("mount", "-o", "loop", str(self.image), str(self.directory))

    def turn_read_only(self, process):
        """Lets all further writes fail. What was not synced before is lost. The process that writes
        stands still meanwhile: Linux may answer a sync that runs while ext4 gives up its journal as
        if it had succeeded. (So a program that only wrote and synced lost data in 18 of 80 trials
        with Linux 6.18, and in none of 80 if it stood still.)"""
        process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: _stands_still(process.pid), f"process {process.pid} to stand still")
            _run("mount", "-o", "remount,abort", str(self.directory))
        finally:
            process.send_signal(signal.SIGCONT)

    def repair(self):
        """Makes the disk whole again. REQUIRES: no process has files open on it."""
        _run("umount", str(self.directory))
        done = subprocess.run(["e2fsck", "-p", str(self.image)], stdout=subprocess.DEVNULL,
                              timeout=60, check=False)
        if done.returncode not in (0, 1):  # 1 says that it has corrected errors.
            raise OSError(f"e2fsck: {self.image} cannot be repaired")
        self._mount()
