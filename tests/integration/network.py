"""Simulates several machines on one machine: network namespaces on one bridge, made with iproute2.

A test that needs them starts itself again inside its own namespaces (`enter`). There it may make
more namespaces, mount, and name hosts without changing the machine. The kernel removes everything
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
    """Yields the ways to get namespaces of our own: as root, and as a user whom the kernel lets be
    root in a namespace."""
    yield ["unshare", "--mount", "--net"]
    yield ["unshare", "--user", "--map-root-user", "--mount", "--net"]


def _try(command):
    """Runs `command`. Returns None if it succeeded, and else why it failed."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else (done.stdout.strip() or f"{command[0]} failed")


def enter():
    """Starts this program again inside its own namespaces, whichever module called this. Returns
    None inside them. If they cannot be made, returns the reason, outside."""
    if INSIDE in os.environ:
        return None
    # Try all operations that a network needs before anything depends on them.
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


def _run(*command, **arguments):
    subprocess.run(command, check=True, timeout=30, **arguments)


# The rules of a node that loses or refuses packets, or whose connections go through a proxy.
LOSES = """
add table ip faults
add chain ip faults in {{ type filter hook input priority 0 ; }}
add rule ip faults in ip saddr {peer} drop
"""
RESETS = """
add table ip faults
add chain ip faults in {{ type filter hook input priority 0 ; }}
add chain ip faults out {{ type filter hook output priority 0 ; }}
add rule ip faults in ip saddr {peer} meta l4proto tcp reject with tcp reset
add rule ip faults out ip daddr {peer} meta l4proto tcp reject with tcp reset
"""
REDIRECTS = """
add table ip proxy
add chain ip proxy out {{ type nat hook output priority -100 ; }}
add rule ip proxy out meta mark != {mark} ip daddr {prefix}.0/24 meta l4proto tcp redirect to :{port}
"""


def why_no_rules():
    """Returns why nodes can have no rules for packets; None if they can. Works inside `enter`."""
    return _try(["nft", REDIRECTS.format(mark=1, prefix=PREFIX, port=1) + "delete table ip proxy"])


class Network:
    """Nodes node0, node1, … at 10.77.0.1, …, which find each other by name. The caller is one more
    machine on the same bridge. Use it as a context manager, inside `enter`."""

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
        """Makes the network. Registers with `undo` how to remove each part, so that a network that
        fails half-way is removed as well."""
        # iproute2 names namespaces by mounts in /run.
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
            # The kernel removes a deleted namespace and its cable some time later, but the next
            # network needs the cable's name at once.
            undo.callback(_run, "ip", "link", "delete", f"port{index}")
            _run("ip", "link", "set", f"port{index}", "master", "bridge0", "up")
            _run("ip", "-n", space, "address", "add", f"{self.addresses[index]}/24", "dev", "eth0")
            _run("ip", "-n", space, "link", "set", "eth0", "up")
            _run("ip", "-n", space, "link", "set", "lo", "up")

    def pull_cable(self, node):
        """Disconnects the node: packets to and from it are lost, and nobody is told."""
        _run("ip", "link", "set", f"port{node}", "nomaster")

    def plug_cable(self, node):
        _run("ip", "link", "set", f"port{node}", "master", "bridge0")

    def _rule(self, node, text, **values):
        _run(*self.on(node, "nft", "-f", "-"), text=True, input=text.format(**values))

    def lose_packets(self, node, peer):
        """Lets the node lose all packets that come from another one. Those to it still arrive."""
        self._rule(node, LOSES, peer=self.addresses[peer])

    def reset_connections(self, node, peer):
        """Ends all connections between two nodes, and refuses new ones."""
        self._rule(node, RESETS, peer=self.addresses[peer])

    def heal(self, node):
        """Takes back what lose_packets or reset_connections did at the node."""
        self._rule(node, "delete table ip faults")

    def redirect(self, node, port, mark):
        """Sends the node's connections to other nodes to a port of its own, unless they have the
        mark. SO_ORIGINAL_DST tells the listener where they were to go."""
        self._rule(node, REDIRECTS, mark=mark, prefix=PREFIX, port=port)

    def on(self, node, *command):
        """Returns the command line that starts `command` on the node."""
        return ["nsenter", f"--net=/run/netns/{self._spaces[node]}", *map(str, command)]
