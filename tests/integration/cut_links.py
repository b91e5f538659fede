"""Ends connections of running processes from outside, as a firewall does: the sockets stay open,
and nothing goes through them any more. A seed determines which connection is cut when."""
import ctypes
import os
import random
import socket
import subprocess
import threading

PIDFD_OPEN = 434
PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)


class Unspecified(ctypes.Structure):
    """A socket address of family AF_UNSPEC."""
    _fields_ = [("family", ctypes.c_ushort), ("rest", ctypes.c_char * 14)]


def call(number, *arguments):
    answer = LIBC.syscall(number, *arguments)
    if answer < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return answer


def is_allowed():
    """Returns whether this system lets a process get the sockets of its children."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:  # Ends when its stdin is closed.
        try:
            theirs = call(PIDFD_OPEN, child.pid, 0)
            os.close(call(PIDFD_GETFD, theirs, 0, 0))
            os.close(theirs)
        except OSError:
            return False
    return True


def connections(process):
    """Returns duplicates of the process's connected sockets. The caller closes them."""
    found = []
    try:
        theirs = call(PIDFD_OPEN, process.pid, 0)
    except OSError:
        return found
    try:
        for name in os.listdir(f"/proc/{process.pid}/fd"):
            try:
                if os.readlink(f"/proc/{process.pid}/fd/{name}").startswith("socket:"):
                    link = socket.socket(fileno=call(PIDFD_GETFD, theirs, int(name), 0))
                    if is_connected(link):
                        found.append(link)
                    else:
                        link.close()
            except OSError:  # The process has closed it meanwhile.
                continue
    except OSError:  # The process has ended.
        pass
    finally:
        os.close(theirs)
    return found


def is_connected(link):
    try:
        link.getpeername()
    except OSError:
        return False
    return True


def cut(link, abruptly):
    """Cuts a connection. Data sent before still arrive; if `abruptly`, they may be lost, and both
    ends see a reset."""
    try:
        if abruptly and link.family in (socket.AF_INET, socket.AF_INET6):
            LIBC.connect(link.fileno(), ctypes.byref(Unspecified(socket.AF_UNSPEC)), 16)
        else:
            link.shutdown(socket.SHUT_RDWR)
    except OSError:  # The connection has ended by itself.
        pass


class Cutter:
    """Cuts a connection of a random process, `cuts` times, until the block ends."""

    def __init__(self, processes, seed, cuts, pause_s):
        self.processes = list(processes)
        self.random = random.Random(seed)
        self.seed = seed
        self.left = cuts
        self.done = 0
        self.pause_s = pause_s
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        while self.left > 0 and not self.over.wait(self.random.uniform(0, 2 * self.pause_s)):
            links = connections(self.random.choice(self.processes))
            if links:
                cut(self.random.choice(links), abruptly=self.random.random() < 0.5)
                self.left -= 1
                self.done += 1
            for link in links:
                link.close()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
