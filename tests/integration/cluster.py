"""Starts Slipstream's programs as real processes for a test, and stops each of them by its id."""
import json
import pathlib
import signal
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).absolute().parents[1] / "support"))
from programs import DEADLINE_S, OWN_BUILD, program, scratch, wait_until

TWO_SERVERS = "localhost:7070,localhost:7071"

# cluster.lease where a test loses a worker: short, and still longer than a living worker may have to
# wait for a processor, which was more than a second while other tests ran beside it.
LEASE_S = 3
LEASE = f"{LEASE_S}s"


# The exit codes by which psctl status says that it has shown a run which failed.
RUN_FAILED, DIVERGED = 80, 81


def psctl(*arguments, timeout=DEADLINE_S, check=True, build=OWN_BUILD, codes=(0,)):
    """Runs psctl to its end, which must be with one of `codes` if `check` is set. Returns the
    completed process, with its output as text."""
    done = subprocess.run([build.program("deploy/psctl/psctl"), *arguments], text=True,
                          timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    if check and done.returncode not in codes:
        raise AssertionError(f"psctl {' '.join(arguments)} exited {done.returncode}:\n{done.stderr}")
    return done


def overrides(settings):
    arguments = []
    for key, value in settings.items():
        arguments += ["--set", f"{key}={value}"]
    return arguments


def run(config, settings=None, run_dir=None, timeout=DEADLINE_S, extra=()):
    """Runs `psctl run -o json` to the end and returns its summary."""
    arguments = ["run", str(config), "-o", "json", *overrides(settings or {})]
    if run_dir is not None:
        arguments += ["--run-dir", str(run_dir)]
    arguments += extra
    return json.loads(psctl(*arguments, timeout=timeout).stdout)


def plain_loop(config, settings=None, steps=None, weights=None):
    """Runs the same training without servers and returns its summary."""
    arguments = [program("tests/integration/plain_loop"), str(config), *overrides(settings or {})]
    if steps is not None:
        arguments += ["--steps", str(steps)]
    if weights is not None:
        arguments += ["--weights", str(weights)]
    done = subprocess.run(arguments, text=True, timeout=DEADLINE_S, stdout=subprocess.PIPE,
                          check=True)
    return json.loads(done.stdout)


class Cluster:
    """Servers and workers started by hand, as an operator starts separate services. Unless the
    settings say otherwise, there are two servers, which stay when the run is over."""

    listen = "127.0.0.1:0"  # The address at which servers listen.
    worker_prefix = ()      # A command that starts the workers.

    def __init__(self, config, settings, directory, workers, server_prefix=(),
                 build=OWN_BUILD, servers=None, aggregators=()):
        """Starts `workers` workers, and all servers of the settings unless `servers` gives a
        smaller number. `aggregators` names those to start, each as (group, shard)."""
        self.build = build  # The build whose programs are started.
        self.server_prefix = list(server_prefix)
        self.directory = pathlib.Path(directory)
        self.config = str(config)
        self.settings = {"cluster.servers": TWO_SERVERS, "run.after": "stay", **settings}
        self.servers = []
        self.aggregators = {}
        self.workers = {}
        self.logs = []
        shards = servers or len(self.settings["cluster.servers"].split(","))
        try:
            self.coordinator = self.start_server(0)
            for shard in range(1, shards):
                self.start_server(shard)
            for group, shard in aggregators:
                self.start_aggregator(group, shard)
            for worker in range(workers):
                self.start_worker(worker)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def credentials(self):
        """Returns the flags with which clients authenticate themselves to the cluster."""
        return [word for key, flag in (("security.mtls.ca", "--ca"), ("security.token", "--token"))
                if key in self.settings for word in (flag, self.settings[key])]

    def _start(self, name, *arguments):
        log = open(self.directory / f"{name}.log", "ab")
        self.logs.append(log)
        return subprocess.Popen(list(arguments), stdout=log, stderr=log)

    def start_server(self, shard, listen=None, settings=None):
        """Starts a server, by default at a port of its own. Returns its address once it listens."""
        port_file = self.directory / f"server-{shard}.port"
        arguments = [*self.server_prefix, self.build.program("server/ps_server"), "--config",
                     self.config, "--shard", str(shard), "--listen", listen or self.listen,
                     "--port-file", str(port_file), *overrides({**self.settings, **(settings or {})})]
        if shard > 0:
            arguments += ["--coordinator", self.coordinator]
        server = self._start(f"server-{shard}", *arguments)
        self.servers.append(server)
        wait_until(lambda: port_file.exists() or server.poll() is not None,
                   f"server {shard} has neither a port nor ended")
        if not port_file.exists():
            raise AssertionError(f"server {shard} exited {server.returncode}:\n"
                                 + (self.directory / f"server-{shard}.log").read_text())
        return port_file.read_text().strip()

    def kill_server(self, shard):
        self.servers[shard].send_signal(signal.SIGKILL)
        self.servers[shard].wait()

    def restart_server(self, shard, settings=None, listen=None):
        """Starts a server again that has ended, at its old address unless `listen` names another;
        `settings` replace those that it had before."""
        port_file = self.directory / f"server-{shard}.port"
        address = port_file.read_text().strip()
        port_file.unlink()
        self.start_server(shard, listen or address, settings)
        self.servers[shard] = self.servers.pop()

    def start_aggregator(self, group, shard, listen=None):
        name = f"aggregator-{group}.{shard}"
        self.aggregators[group, shard] = self._start(
            name, self.build.program("server/ps_server"), "--config", self.config, "--shard",
            str(shard), "--aggregate", str(group), "--listen", listen or self.listen, "--port-file",
            str(self.directory / f"{name}.port"), "--coordinator", self.coordinator,
            *overrides(self.settings))

    def start_worker(self, worker, arguments=None):
        """Starts a worker under this id, unless `arguments` say otherwise."""
        arguments = ["--worker", str(worker)] if arguments is None else arguments
        self.workers[worker] = self._start(f"worker-{worker}", *self.worker_prefix,
                                           self.build.program("worker/ps_worker"),
                                           "--coordinator", self.coordinator,
                                           *self.credentials(), *arguments)

    def kill_aggregator(self, group, shard):
        self.aggregators[group, shard].send_signal(signal.SIGKILL)
        self.aggregators[group, shard].wait()

    def restart_aggregator(self, group, shard):
        """Starts an aggregator again that has ended, at its old address."""
        port_file = self.directory / f"aggregator-{group}.{shard}.port"
        self.start_aggregator(group, shard, port_file.read_text().strip())

    def kill_worker(self, worker):
        self.workers[worker].send_signal(signal.SIGKILL)
        self.workers[worker].wait()

    def log_text(self, name):
        return (self.directory / f"{name}.log").read_text(encoding="utf-8")

    def status(self):
        done = psctl("status", "--coordinator", self.coordinator, *self.credentials(), "-o",
                     "json", build=self.build, codes=(0, RUN_FAILED, DIVERGED))
        return json.loads(done.stdout)

    def wait_for(self, condition, what, timeout=DEADLINE_S):
        """Polls the status until `condition(status)`; returns that status."""
        found = []

        def look():
            try:
                status = self.status()
            except AssertionError:
                # On a busy machine, an answer may take too long.
                if any(server.poll() is not None for server in self.servers):
                    raise
                return False
            if status["phase"] == "FAILED":
                raise AssertionError(f"the run failed: {status['failure']}\n{self.log_texts()}")
            if condition(status):
                found.append(status)
            return bool(found)

        wait_until(look, what, timeout)
        return found[0]

    def wait_finished(self, timeout=DEADLINE_S):
        return self.wait_for(lambda status: status["phase"] == "FINISHED", "the run to finish",
                             timeout)

    def log_texts(self):
        return "\n".join(f"--- {path.name}\n{path.read_text()}" for path in
                         sorted(self.directory.glob("*.log")))

    def stop(self):
        processes = [*self.workers.values(), *self.aggregators.values(), *self.servers]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for log in self.logs:
            log.close()


def make_certificate(directory, stem, member, *hosts, begins=-1, ends=24, run="small"):
    """Makes STEM.crt and STEM.key for a member of the run, such as "worker/3". The certificate is
    valid from `begins` to `ends`, in hours from now. Needs //tests/support:make_certificate."""
    pathlib.Path(directory).mkdir(exist_ok=True)
    subprocess.run([program("tests/support/make_certificate"), directory, stem,
                    f"slipstream://run/{run}/{member}", str(begins), str(ends), *hosts], check=True)


def line_of(status, worker):
    """Returns the worker's entry in shard 0's status; empty before there is one."""
    return next((line for line in status["shards"][0]["workers"] if line["worker"] == worker), {})


def outlive_one(config, settings):
    """Kills one of four workers in the middle of a run, and checks that the others finish it.
    Returns the last status."""
    # These delays make the remaining work take longer than the lease of the killed worker.
    settings = {"cluster.lease": LEASE, "data.train_examples": 25600,
                "testing.push_delay_max": "40ms", **settings}
    with scratch() as directory, Cluster(config, settings, directory, workers=4) as live:
        live.wait_for(lambda status: line_of(status, 3).get("last_sequence", 0) > 1,
                      "worker 3 to push")
        live.kill_worker(3)
        status = live.wait_finished()
        codes = [live.workers[worker].wait(timeout=DEADLINE_S) for worker in (0, 1, 2)]
        states = {worker["worker"]: worker["state"] for worker in status["workers"]}
        if codes != [0, 0, 0] or states[3] != "dead":
            raise AssertionError(f"the others ended with {codes}, and worker 3 is {states[3]}:\n"
                                 + live.log_texts())
    return status


def write_config(directory, text):
    path = pathlib.Path(directory) / "run.yaml"
    path.write_text(text)
    return path
