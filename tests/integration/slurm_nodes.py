"""A Slurm of three nodes on this machine: munged, slurmctld and three slurmd, each a process that is
stopped by its id."""
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

import cluster

NODES = 3
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")


def missing():
    """Returns why no Slurm can be started here; empty if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=SEARCH_PATH) is None]
    if absent:
        return f"{', '.join(absent)} not installed: deploy/setup.sh --dev installs them"
    return "" if os.geteuid() == 0 else "slurmd starts jobs only as root, and this user is not"


# Daemons lie where users' shells may not look.
SEARCH_PATH = os.environ.get("PATH", "/usr/bin") + ":/usr/sbin:/sbin"

CONFIG = """ClusterName=three
SlurmctldHost=localhost
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=15
{nodes}
PartitionName=all Nodes=n[1-{count}] Default=YES MaxTime=INFINITE State=UP
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """Use it in a `with`. Jobs are started in `directory`."""

    def __init__(self, directory):
        self.directory = directory
        # Paths of sockets have at most 107 characters, and Bazel's directories are longer.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="slurm", dir="/tmp"))
        self.environment = {**os.environ, "PATH": SEARCH_PATH,
                            "SLURM_CONF": str(self.folder / "slurm.conf"),
                            "SLIPSTREAM_HOST": "localhost"}
        self.daemons = []
        self.next_start = 0

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        ports = free_ports(NODES + 1)
        nodes = "\n".join(f"NodeName=n{n} NodeHostname=localhost Port={ports[n]} CPUs=4"
                          for n in range(1, NODES + 1))
        (self.folder / "slurm.conf").write_text(
            CONFIG.format(ports=ports, folder=self.folder, nodes=nodes, count=NODES))
        for name in ("state", *(f"n{n}" for n in range(1, NODES + 1))):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)
        self.daemon("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                    f"--key-file={key}", f"--pid-file={self.folder}/munge.pid",
                    f"--log-file={self.folder}/munge.log", f"--seed-file={self.folder}/munge.seed")
        cluster.wait_until((self.folder / "munge.socket").exists, "munged to listen")
        self.daemon("slurmctld", "-D")
        for n in range(1, NODES + 1):
            self.daemon("slurmd", "-D", "-N", f"n{n}")
        cluster.wait_until(lambda: self.ask("sinfo", "-h", "-t", "idle", "-o", "%D") == str(NODES),
                           "all nodes to be idle")

    def daemon(self, *command):
        with open(self.folder / f"{command[0]}-{len(self.daemons)}.out", "wb") as log:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdout=log,
                                                 stderr=log))

    def stop(self):
        try:
            if self.daemons:
                self.ask("scancel", "--user=root")
                cluster.wait_until(lambda: self.ask("squeue", "-h") == "", "all jobs to end")
        finally:
            self.stop_daemons()

    def stop_daemons(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder)

    def ask(self, *command):
        """Returns what a command of Slurm prints, or nothing while its daemon does not answer."""
        done = subprocess.run(command, env=self.environment, cwd=self.directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=cluster.DEADLINE_S)
        return done.stdout.strip()

    def state(self, job):
        words = self.ask("scontrol", "-o", "show", "job", job).split()
        return next((word.split("=")[1] for word in words if word.startswith("JobState=")), "")

    def wait_until_done(self, job):
        """Waits until a job has completed. One that was requeued is started soon: Slurm puts it off
        by two minutes, counted from the end of its last process."""
        self.next_start = 0
        cluster.wait_until(lambda: self.is_done(job), f"job {job} to complete")

    def is_done(self, job):
        state = self.state(job)
        if state == "PENDING" and time.monotonic() > self.next_start:
            # A job that starts in the second in which it ended is refused by its nodes.
            self.ask("scontrol", "update", f"JobId={job}", "StartTime=now+3")
            self.next_start = time.monotonic() + 6
        return state == "COMPLETED"
