"""Links between machines that are cut, cut in one direction, reset, late or slow. Each process has
a machine of its own: a network namespace."""
import collections
import contextlib
import json
import pathlib
import subprocess
import sys

import network
from durable_cluster import WORKERS, DurableCluster
from scenario import BATCHES_PER_PAUSE, SHARDS, Scenario, counts_of, pause

PROXY = pathlib.Path(__file__).with_name("tcp_proxy.py")
MARK = 0x51
CUT_S = (0.5, 6)
# Many connections may fall silent in a part of the run, one after another, and workers notice each
# after about 20 s.
PART_S = 600
NODES = len(SHARDS) + WORKERS
KINDS = ("drop", "reset", "one-way")
ENDINGS = ("close", "reset", "silence")
POLICIES = ("hardsync", "softsync")


def node_of(name):
    role, number = name.split("-")
    return int(number) if role == "server" else len(SHARDS) + int(number)


class NetworkCluster(DurableCluster):
    """A cluster each of whose processes is on a node of its own."""

    def __init__(self, net, directory, settings):
        self.net = net
        servers = ",".join(f"{net.addresses[shard]}:7070" for shard in SHARDS)
        super().__init__(directory, {"cluster.servers": servers,
                                     "security.plaintext": "accept_the_risk", **settings})

    def _start(self, name, *arguments):
        return super()._start(name, *self.net.on(node_of(name), *arguments))

    def start_server(self, shard, listen=None, settings=None):
        return super().start_server(shard, listen or f"{self.net.addresses[shard]}:0", settings)


@contextlib.contextmanager
def cut(net, kind, node, peer):
    """Cuts the link between two nodes. With "one-way", packets from the first still arrive."""
    if kind == "reset":
        net.reset_connections(node, peer)
    else:
        net.lose_packets(node, peer)
    if kind == "drop":
        net.lose_packets(peer, node)
    yield
    net.heal(node)
    if kind == "drop":
        net.heal(peer)


def cut_links(trial, kinds):
    with network.Network(NODES, trial.directory) as net, \
            trial.cluster(NetworkCluster, net=net) as live:
        for _ in trial.moments(live):
            server = trial.chance.choice(SHARDS)
            other = trial.chance.choice([node for node in range(NODES) if node != server])
            kind = trial.chance.choice(kinds)
            with cut(net, kind, *trial.chance.sample((server, other), 2)):
                pause(trial.chance.uniform(*CUT_S))
            trial.note_fault(f"partitions ({kind})")
        trial.judge(live)


class FaultyLink:
    """A node whose connections to other nodes go through a proxy (tcp_proxy.py)."""

    def __init__(self, net, node, seed, endings):
        self.process = subprocess.Popen(
            net.on(node, sys.executable, PROXY, "--seed", seed, "--endings", endings,
                   "--mark", MARK),
            text=True, stdout=subprocess.PIPE)
        net.redirect(node, int(self.process.stdout.readline()), MARK)

    def counts(self):
        """Ends the proxy. Returns how many connections behaved how."""
        self.process.terminate()
        said, _ = self.process.communicate(timeout=20)
        return json.loads(said.splitlines()[-1])


def bad_links(trial):
    """Lets the connections of all workers go through proxies, each of which may end as many."""
    links = []
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network.Network(NODES, trial.directory))
        for worker in range(WORKERS):
            link = FaultyLink(net, len(SHARDS) + worker, trial.chance.getrandbits(32), trial.faults)
            stack.callback(link.process.kill)
            links.append(link)
        live = stack.enter_context(trial.cluster(NetworkCluster, net=net))
        for part in range(1, trial.faults + 1):
            trial.wait_for_batches(live, part * trial.scenario.batches_per_fault, PART_S)
        trial.judge(live)
        for link in links:
            counts = collections.Counter(link.counts())
            trial.report.kinds += collections.Counter(
                {f"links ({ending})": counts[ending] for ending in ENDINGS})
            trial.report.remarks.append(counts_of(counts.elements()))


def why_not():
    if network.INSIDE not in network.os.environ:
        return "network namespaces cannot be made here"
    return network.why_no_rules()


def scenarios():
    # Many mini-batches for each fault: training goes on behind a reset, and while two servers do not
    # reach each other.
    for policy in POLICIES:
        yield Scenario(f"partitions-{policy}", "synced", policy,
                       lambda trial: cut_links(trial, KINDS),
                       batches_per_fault=BATCHES_PER_PAUSE, missing=why_not)
    for kind in KINDS:
        yield Scenario(f"partitions-{kind}", "memory", "softsync",
                       lambda trial, kind=kind: cut_links(trial, (kind,)),
                       batches_per_fault=BATCHES_PER_PAUSE, missing=why_not)
    for policy in POLICIES:
        yield Scenario(f"links-{policy}", "synced", policy, bad_links, missing=why_not)
    yield Scenario("links-memory", "memory", "softsync", bad_links, missing=why_not)
