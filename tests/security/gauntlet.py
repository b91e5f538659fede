#!/usr/bin/env python3
"""Measures what attackers that may connect, or in plaintext register, cost a cluster that trains.

    python3 tests/security/gauntlet.py [--mtls nobody|stranger|viewer] [--attack WORDS]... [--rounds N]
                                       [--seconds S] [--recovery S] [-o json]

For each attack it starts a server and two workers, and these train over TCP. With --mtls they do so over TLS
with certificates on both sides, and the attackers have none (nobody), one of another authority (stranger) or a
viewer's. Each
attack runs against the server's port from this machine: N times (3) S seconds (8) without it take turns with
S seconds with it, then S seconds (60) of rest follow.

A line tells for each attack the workers' rate of pushes as a share of the rate without it; in brackets the
same as a share of what the attacker's own computing, which an attacker elsewhere would not take, leaves of
this machine's cores; the server's cores that went into the attack and not into pushes; its resident memory
in MiB before, at its peak and after the rest; connections opened, and closed by the server; workers that lost
their lease; the attacker's own share of a core; and the server's last warning. Exits 1 where a promise is broken: the rate in brackets is below 90 %, memory is not
back within 10 % and 16 MiB, a lease was lost, or the server has ended.
"""
import argparse
import contextlib
import json
import multiprocessing
import os
import pathlib
import ssl
import statistics
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "integration"))
import cluster
import floods
import process_figures

RUN_YAML = """
version: 1
name: gauntlet
model: {preset: mlp}
data: {format: synthetic, train_examples: 6400, test_examples: 1000}
training: {batch_size: 32, epochs: 100000}
consistency: {policy: async}
optimizer: {kind: sgd, learning_rate: 0.000001}
cluster: {servers: [localhost:7070], workers: 2, lease: 5s}
wire: {transport: tcp}
evaluation: {every_epochs: 0}
"""
ATTACKER = 7  # The worker's id of attackers that register.
RATE_MIN = 0.9
BACK_MAX, BACK_MIB = 1.1, 16


def kinds(certificates, who):
    """Returns the floods by name, within TLS if there are certificates."""
    if who is None:
        return {**floods.kinds(), **floods.member_kinds(ATTACKER)}
    tls = context(certificates, who)

    def within_tls(kind):
        def flood(address):
            made = kind(address)
            made.tls = tls
            return made
        return flood

    return {**{name: within_tls(kind) for name, kind in floods.kinds().items()},
            **floods.tls_kinds(context(certificates, "viewer"))}


def context(certificates, who):
    tls = ssl.create_default_context(cafile=certificates / "ca.crt")
    tls.set_alpn_protocols(["h2"])
    if who != "nobody":
        folder = certificates if who == "viewer" else certificates / "others"
        tls.load_cert_chain(folder / "viewer.crt", folder / "viewer.key")
    return tls


def make_certificates(directory):
    certificates = directory / "certs"
    for folder in (certificates, certificates / "others"):
        subprocess.run([cluster.program("deploy/psctl/psctl"), "certs", "init", folder, "--run",
                        "gauntlet", "--hosts", "localhost", "--workers", "2"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return certificates


def attack(flood_of, address, over, counts):
    with flood_of(address) as flood:
        begun = time.monotonic()
        over.wait()
        counts[0], counts[1] = flood.opened, flood.closed
        counts[2] = time.process_time() / (time.monotonic() - begun)


class Attack:
    """An attack in its own process, so that it does not slow the process that measures."""

    def __init__(self, flood_of, address):
        self.over = multiprocessing.Event()
        self.counts = multiprocessing.Array("d", 3)
        self.process = multiprocessing.Process(target=attack,
                                               args=(flood_of, address, self.over, self.counts))

    def __enter__(self):
        self.process.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.process.join()


def rss_mib(process):
    return int(process_figures.status(process.pid)["VmRSS"]) / 1024


class Watch:
    """Measures the push rate and the memory of a cluster over some seconds."""

    def __init__(self, live):
        self.live = live
        self.peak_mib = 0.0

    def rate(self, seconds):
        """Returns the pushes' rate over some seconds, and the cores that the server used."""
        pid = self.live.servers[0].pid
        begin, cpu_begin, begun = self.pushes(), process_figures.cpu_seconds(pid), time.monotonic()
        while time.monotonic() - begun < seconds:
            self.peak_mib = max(self.peak_mib, rss_mib(self.live.servers[0]))
            time.sleep(0.1)
        took = time.monotonic() - begun
        return ((self.pushes() - begin) / took,
                (process_figures.cpu_seconds(pid) - cpu_begin) / took)

    def pushes(self):
        """Returns the size of the push log in bytes, as a measure of pushes: each push adds a line,
        and lines have about the same length. A request for the status would have to wait behind the
        flood."""
        return (self.live.directory / "push-log-0.csv").stat().st_size


def run_one(live, name, flood_of, arguments):
    """Takes turns: some seconds without the attack, some with it. The machine's own drift is then in
    both."""
    watch = Watch(live)
    server = live.servers[0]
    before = watch.peak_mib = rss_mib(server)
    log_size = (live.directory / "server-0.log").stat().st_size
    ratios, attacks, server_cores = [], [], []
    for _ in range(arguments.rounds):
        alone, cores_alone = watch.rate(arguments.seconds)
        with Attack(flood_of, live.coordinator) as under_way:
            time.sleep(0.5)
            rate, cores = watch.rate(arguments.seconds)
        ratios.append(rate / max(alone, 1e-9))
        server_cores.append(cores - ratios[-1] * cores_alone)
        attacks.append(under_way.counts)
    peak = watch.peak_mib
    time.sleep(arguments.recovery)
    if server.poll() is not None:
        raise AssertionError(f"{name}: the server has ended with {server.returncode}")
    words = (live.directory / "server-0.log").read_bytes()[log_size:].decode().splitlines()
    lost = sum("worker died" in line or "fenced" in line for line in words
               if f" worker={ATTACKER} " not in line)
    last = next((line.split(" ", 3)[-1] for line in reversed(words) if "warning" in line), "")
    cores = statistics.mean(counts[2] for counts in attacks)
    row = {"attack": name, "rate": round(statistics.mean(ratios), 3),
           "rate_of_rest": round(statistics.mean(ratios) / (1 - cores / os.cpu_count()), 3),
           "server_cores": round(statistics.mean(server_cores), 2),
           "before_mib": round(before, 1), "peak_mib": round(peak, 1),
           "after_mib": round(rss_mib(server), 1),
           "opened": int(sum(counts[0] for counts in attacks)),
           "closed_by_server": int(sum(counts[1] for counts in attacks)),
           "attacker_cores": round(cores, 2), "leases_lost": lost, "log": last[:100]}
    row["broken"] = [promise for promise, is_kept in (
        ("rate", row["rate_of_rest"] >= RATE_MIN), ("leases", lost == 0),
        ("memory", row["after_mib"] <= before * BACK_MAX + BACK_MIB)) if not is_kept]
    return row


@contextlib.contextmanager
def training(certificates):
    """Returns a cluster that trains. Each attack has its own, since a server remembers for a minute
    that it was attacked."""
    with cluster.scratch() as directory:
        config = cluster.write_config(directory, RUN_YAML)
        settings = {"cluster.servers": "localhost:7070", "log.push_log": directory}
        if certificates is not None:
            settings["security.mtls.ca"] = str(certificates / "ca.crt")
        with cluster.Cluster(config, settings, directory, workers=2) as live:
            live.wait_for(lambda status: int(status["pushes"]) > 2000, "training to run evenly")
            yield live


def show(row, output):
    if output == "json":
        print(json.dumps(row), flush=True)
        return
    print("{attack:48} rate {rate:5.2f} ({rate_of_rest:5.2f})"
          "  server's cores {server_cores:5.2f}  MiB {before_mib:7.1f} {peak_mib:8.1f} {after_mib:8.1f}"
          "  opened {opened:6} closed {closed_by_server:6}  lost {leases_lost}"
          "  attacker's cores {attacker_cores:4.2f}"
          "  {broken}  {log}".format(**row), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mtls", choices=["nobody", "stranger", "viewer"],
                        help="certificates are demanded, and attackers have these")
    parser.add_argument("--attack", action="append", help="those whose name has these words")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--recovery", type=float, default=60)
    parser.add_argument("-o", dest="output", choices=["table", "json"], default="table")
    arguments = parser.parse_args()
    broken = 0
    with cluster.scratch() as directory:
        certificates = make_certificates(pathlib.Path(directory)) if arguments.mtls else None
        for name, flood_of in kinds(certificates, arguments.mtls).items():
            if arguments.attack and not any(words in name for words in arguments.attack):
                continue
            with training(certificates) as live:
                row = run_one(live, name, flood_of, arguments)
            broken += bool(row["broken"])
            show(row, arguments.output)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
