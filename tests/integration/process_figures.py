"""Figures about processes from /proc, and how they change over a run."""
import os
import pathlib
import threading
import time


def status(pid):
    """Returns the lines of /proc/PID/status by name, with sizes in KiB; an empty dict if the
    process is gone."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.split()[0] for name, value in
            (line.split(":", 1) for line in lines) if value.split()}


def cpu_seconds(pid):
    """Returns the processor time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def figures_of(pid):
    """Returns threads, file descriptors and resident memory of a process; empty once it is gone."""
    figures = status(pid)
    try:
        descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {"threads": int(figures["Threads"]), "descriptors": descriptors,
            "rss_kib": int(figures["VmRSS"])} if "VmRSS" in figures else {}


class Sampler:
    """Samples the figures of processes until the block ends.

    `progress()` returns the value against which samples are plotted, such as the version of a
    shard.
    """

    def __init__(self, pids, progress, interval_s=0.5):
        self.samples = {pid: [] for pid in pids}
        self._progress = progress
        self._interval_s = interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _run(self):
        while not self._stop.is_set():
            begin = time.monotonic()
            progress = self._progress()
            for pid, samples in self.samples.items():
                figures = figures_of(pid)
                if progress is not None and figures:
                    samples.append({"progress": progress, **figures})
            self._stop.wait(max(0.0, begin + self._interval_s - time.monotonic()))


def bytes_below(directory):
    """Returns the size of all files, some of which may be removed meanwhile."""
    size = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                size += os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                pass
    return size


def slope(samples, what):
    """Returns the slope by least squares: the change of `what` for one unit of progress."""
    if len(samples) < 2:
        return 0.0
    xs = [sample["progress"] for sample in samples]
    ys = [sample[what] for sample in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    if spread == 0:
        return 0.0
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys)) / spread
