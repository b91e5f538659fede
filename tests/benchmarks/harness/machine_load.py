"""Measures how busy other processes kept the machine: their load can make figures worthless
unnoticed."""
import os
import pathlib

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# If other processes use more than this many cores, a round counts as taken on a busy machine. The
# kernel's own threads stay below it.
BUSY_CORES = 0.15


def parse_total(stat_text):
    """Returns (ticks in which a process computed, ticks that passed) of all cores, from /proc/stat.

    Interrupts are left out, as they are charged to no process; loopback's traffic, which is ours,
    causes them. Time that a hypervisor took away (steal) counts as used by others.
    """
    fields = [int(field) for field in stat_text.splitlines()[0].split()[1:9]]
    user, nice, system, _, _, _, _, steal = fields
    return user + nice + system + steal, sum(fields)


def parse_process(stat_text):
    """Returns (id, parent's id, ticks used by it and its ended children), from /proc/ID/stat."""
    # The name stands in parentheses and may hold any character, even parentheses.
    before, _, after = stat_text.rpartition(")")
    fields = after.split()
    return int(before.split("(")[0]), int(fields[1]), sum(int(field) for field in fields[11:15])


def ticks_of_tree(processes, root):
    """Returns the ticks used by the process `root` and all its descendants."""
    children, own = {}, {}
    for process, parent, ticks in processes:
        children.setdefault(parent, []).append(process)
        own[process] = ticks
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        total += own.get(process, 0)
        waiting += children.get(process, [])
    return total


def read_processes():
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            yield parse_process(path.read_text(encoding="utf-8", errors="replace"))
        except (OSError, ValueError, IndexError):
            continue  # The process has ended.


class LoadWatch:
    """Measures the load from its construction on."""

    def __init__(self):
        self.begin = self._read()

    @staticmethod
    def _read():
        computed, passed = parse_total(pathlib.Path("/proc/stat").read_text(encoding="utf-8"))
        return computed, passed, ticks_of_tree(read_processes(), os.getpid())

    def cores_of_others(self):
        """Returns the mean number of cores that were busy for processes that are not ours."""
        computed, passed, own = (now - then for now, then in zip(self._read(), self.begin))
        if passed <= 0:
            return 0.0
        return max(0.0, (computed - own) / (passed / os.cpu_count()))
