"""psctl slurm on a Slurm of three nodes: a job that is preempted goes on and loses nothing."""
import json
import pathlib
import subprocess
import unittest

import cluster
import slurm_nodes

CONFIG = (pathlib.Path(__file__).parent / "small_run.yaml").absolute()
EXAMPLES = 32 * 320
SETTINGS = {"data.train_examples": EXAMPLES, "evaluation.every_epochs": 0,
            "testing.push_delay_max": "60ms", "durability.level": "synced",
            "durability.interval": "200ms",
            "cluster.lease": cluster.LEASE}
NO_SLURM = slurm_nodes.missing()


def updates_in(metrics):
    """Returns the updates in the last whole line of a file of metrics; 0 without one."""
    lines = metrics.read_text().splitlines(keepends=True) if metrics.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    return json.loads(whole[-1])["updates"] if whole else 0


class BatchScriptTest(unittest.TestCase):
    def test_the_script_in_deploy_is_what_psctl_writes(self):
        folder = pathlib.Path(cluster.program("deploy/psctl/psctl")).parent
        said = subprocess.run(
            ["psctl", "slurm", "deploy/examples/quickstart.yaml", "--nodes", "3", "--set",
             "durability.level=synced", "--set", "security.plaintext=accept_the_risk", "--dry-run"], env={"PATH": str(folder)},
            text=True, capture_output=True, check=True, timeout=cluster.DEADLINE_S)
        self.assertEqual(said.stdout, pathlib.Path("deploy/slurm/run.sbatch").read_text())


@unittest.skipIf(NO_SLURM, NO_SLURM)
class SlurmTest(unittest.TestCase):
    def submit(self, slurm):
        """Submits a run. Returns its job, and the directory that its nodes share."""
        said = subprocess.run(
            [cluster.program("deploy/psctl/psctl"), "slurm", str(CONFIG), "--nodes",
             str(slurm_nodes.NODES), "--workers-per-node", "2,1,1", *cluster.overrides(SETTINGS)],
            env=slurm.environment, cwd=slurm.directory, text=True, capture_output=True, check=False,
            timeout=cluster.DEADLINE_S)
        self.assertEqual(said.returncode, 0, said.stderr)
        job = said.stdout.split()[-1]
        return job, pathlib.Path(slurm.directory) / f"runs/small-{job}"

    def preempt(self, slurm, *command):
        """Runs a job, interrupts it by the command, lets it go on, and checks what came of it."""
        job, run = self.submit(slurm)
        log = pathlib.Path(slurm.directory) / f"slurm-{job}.log"
        text = lambda: log.read_text() if log.exists() else "no log"
        metrics = run / "attempt-0/metrics.jsonl"
        cluster.wait_until(lambda: updates_in(metrics) >= 5, "the run to train")

        slurm.ask(*command, job)
        slurm.wait_until_done(job)

        first, last = (json.loads((run / f"attempt-{attempt}/summary.json").read_text())
                       for attempt in (0, 1))
        self.assertEqual(first["exit_code"], 79, text())
        self.assertLess(first["examples"], EXAMPLES, "the run was over before")
        self.assertEqual(last["run"], first["run"])
        self.assertEqual(last["ended_by"], "epochs")
        self.assertGreaterEqual(last["examples"], EXAMPLES, "some are lost")
        self.assertGreater(last["updates"], first["updates"])
        self.assertEqual([server["generation"] for server in last["servers"]], [0, 0])
        for attempt in (0, 1):
            logs = {path.stem for path in (run / f"attempt-{attempt}/logs").glob("*.log")}
            self.assertEqual(logs, {"server-0", "server-1", "worker-0", "worker-1", "worker-2",
                                    "worker-3"})
        self.assertIn("node 2 of 3 (Slurm): worker 3;", text())

    def test_a_preempted_job_goes_on_and_loses_nothing(self):
        with cluster.scratch() as directory, slurm_nodes.Slurm(directory) as slurm:
            with self.subTest("Slurm says in time that the job will end"):
                self.preempt(slurm, "scancel", "--batch", "--signal=USR1")
            with self.subTest("Slurm ends all of its processes"):
                self.preempt(slurm, "scontrol", "requeue")


if __name__ == "__main__":
    unittest.main()
