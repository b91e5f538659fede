"""Machines of their own on one machine: network namespaces on one bridge, made with iproute2.

A test that needs them starts itself again inside namespaces that belong to it alone (`enter`), where
it may make more, mount and name hosts without touching the machine. The kernel takes all of it away
with the test's last process, however that ends.
"""
import contextlib
import os
import pathlib
import subprocess
import sys

INSIDE = "SLIPSTREAM_TEST_NETWORK"
PREFIX = "10.77.0"


def _ways():
    """How to get namespaces of our own: as root, and as somebody whom the kernel lets be root in
    one."""
    yield ["unshare", "--mount", "--net"]
    yield ["unshare", "--user", "--map-root-user", "--mount", "--net"]


def _try(command):
    """What keeps `command` from running; nothing if it ran."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stdout.strip() or f"{command[0]} failed")


def enter():
    """Starts this program again, whoever imported the caller, inside namespaces of its own. Returns
    inside them None, and outside, where they cannot be made, why."""
    if INSIDE in os.environ:
        return None
    # All that a network needs, tried out before anything depends on it.
    probe = ["sh", "-ec", "mount -t tmpfs tmpfs /run; ip netns add probe; "
                          "ip link add bridge0 type bridge; "
                          "ip link add port0 type veth peer name eth0 netns probe; "
                          "nsenter --net=/run/netns/probe true"]
    reasons = []
    for way in _ways():
        reason = _try(way + probe)
        if reason is None:
            os.execvpe(way[0], way + [sys.executable, *sys.orig_argv[1:]], {**os.environ, INSIDE: "1"})
        reasons.append(reason)
    return "network namespaces cannot be made here: " + "; ".join(reasons)


def _run(*command):
    subprocess.run(command, check=True, timeout=30)


class Network:
    """Nodes node0, node1, … at 10.77.0.1, …, which find each other by name; the caller is one more
    machine on the same bridge. Use it as a context, inside `enter`."""

    def __init__(self, nodes, directory):
        self.names = [f"node{i}" for i in range(nodes)]
        self.addresses = [f"{PREFIX}.{i + 1}" for i in range(nodes)]
        self._spaces = [f"slipstream-{os.getpid()}-{name}" for name in self.names]
        self._hosts = pathlib.Path(directory) / "hosts"
        self._undo = None

    def __enter__(self):
        with contextlib.ExitStack() as undo:
            self._make(undo)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_):
        self._undo.close()

    def _make(self, undo):
        """Makes the network; `undo` gets what takes it away again, also of one that fails half-way."""
        # There iproute2 names namespaces by mounts.
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        undo.callback(_run, "umount", "--recursive", "/run")
        self._hosts.write_text("127.0.0.1 localhost\n" + "".join(
            f"{address} {name}\n" for address, name in zip(self.addresses, self.names)))
        _run("mount", "--bind", str(self._hosts), "/etc/hosts")
        undo.callback(_run, "umount", "/etc/hosts")
        _run("ip", "link", "add", "bridge0", "type", "bridge")
        undo.callback(_run, "ip", "link", "delete", "bridge0")
        _run("ip", "address", "add", f"{PREFIX}.254/24", "dev", "bridge0")
        _run("ip", "link", "set", "bridge0", "up")
        _run("ip", "link", "set", "lo", "up")
        for index, space in enumerate(self._spaces):
            _run("ip", "netns", "add", space)
            undo.callback(_run, "ip", "netns", "delete", space)
            _run("ip", "link", "add", f"port{index}", "type", "veth", "peer", "name", "eth0",
                 "netns", space)
            # The kernel takes a deleted namespace apart some time later, and its cable with it. The
            # next network needs the name at once.
            undo.callback(_run, "ip", "link", "delete", f"port{index}")
            _run("ip", "link", "set", f"port{index}", "master", "bridge0", "up")
            _run("ip", "-n", space, "address", "add", f"{self.addresses[index]}/24", "dev", "eth0")
            _run("ip", "-n", space, "link", "set", "eth0", "up")
            _run("ip", "-n", space, "link", "set", "lo", "up")

    def pull_cable(self, node):
        """What is sent to or from it is lost, and nobody is told."""
        _run("ip", "link", "set", f"port{node}", "nomaster")

    def plug_cable(self, node):
        _run("ip", "link", "set", f"port{node}", "master", "bridge0")

    def on(self, node, *command):
        """`command`, as it is started on that node."""
        return ["nsenter", f"--net=/run/netns/{self._spaces[node]}", *map(str, command)]
