"""What follows if workers are lost: cluster.on_worker_loss and cluster.min_workers."""
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 4
BATCHES = 400
SETTINGS = {"consistency.policy": "hardsync", "cluster.workers": WORKERS, "cluster.lease": "1s",
            "data.train_examples": 32 * BATCHES, "evaluation.every_epochs": 0,
            "testing.push_delay_max": "20ms"}


def start(directory, settings):
    return cluster.Cluster(CONFIG, {**SETTINGS, **settings}, directory, workers=WORKERS)


def awaited(status):
    """Returns the ids of the workers in whose places others are awaited."""
    return status.get("missing", {}).get("workers", [])


class LostWorkersTest(unittest.TestCase):
    def run_with_loss(self, settings, lost, arguments):
        """Kills a worker in the middle of a run that waits for another in its place, and starts that
        with these arguments. Returns the last status."""
        settings = {"cluster.on_worker_loss": "wait", **settings}
        with cluster.scratch() as directory, start(directory, settings) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
            live.kill_worker(lost)
            waiting = live.wait_for(awaited, "the run to wait for another worker")
            self.assertEqual(awaited(waiting), [lost])
            said = cluster.psctl("status", "--coordinator", live.coordinator).stdout
            self.assertRegex(said, f"waiting for another worker in place of worker {lost}, gone for .*"
                             "fails in")
            live.start_worker(lost, arguments)
            status = live.wait_finished()
            codes = [worker.wait(timeout=cluster.DEADLINE_S) for worker in live.workers.values()]
            self.assertEqual(codes, [0] * WORKERS, live.log_texts())
        self.assertEqual(int(status["batches_done"]), BATCHES)
        return status

    def test_rounds_wait_for_a_worker_in_the_place_of_the_lost_one(self):
        status = self.run_with_loss({}, 2, arguments=["--worker", "2"])
        # A shard may close one round without the lost worker, where the other has closed it with it.
        rounds = BATCHES // WORKERS
        self.assertIn(int(status["updates"]), (rounds, rounds + 1))

    def test_with_one_server_the_weights_are_those_of_the_run_without_a_loss(self):
        settings = {"cluster.servers": "localhost:7070"}
        with cluster.scratch() as directory, start(directory, settings) as live:
            undisturbed = live.wait_finished()
        # The worker asks for no id, and gets the place that is empty.
        status = self.run_with_loss(settings, 1, arguments=[])
        self.assertEqual(int(status["updates"]), BATCHES // WORKERS)
        self.assertEqual(status["weights_sha256"], undisturbed["weights_sha256"])

    def test_a_run_fails_if_nobody_comes(self):
        settings = {"cluster.on_worker_loss": "wait", "cluster.start_timeout": "10s"}
        with cluster.scratch() as directory, start(directory, settings) as live:
            live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
            live.kill_worker(2)
            with self.assertRaisesRegex(
                    AssertionError, "worker 2 on .* is gone .*, and no other took its place"):
                live.wait_finished()

    def test_a_run_with_too_few_workers_saves_its_weights_and_fails(self):
        for policy in ("softsync", "hardsync"):
            with self.subTest(policy=policy), cluster.scratch() as directory:
                checkpoints = pathlib.Path(directory) / "checkpoints"
                settings = {"consistency.policy": policy, "training.epochs": 1000,
                            "cluster.min_workers": 3, "cluster.start_timeout": "10s",
                            "durability.level": "checkpoint", "durability.interval": "1h",
                            "durability.directory": checkpoints}
                with start(directory, settings) as live:
                    live.wait_for(lambda status: int(status["updates"]) >= 10, "some updates")
                    live.kill_worker(0)
                    live.kill_worker(1)
                    with self.assertRaisesRegex(
                            AssertionError, "2 workers are left of at least 3 .*the last weights are "
                            "saved"):
                        live.wait_finished()
                    status = live.status()
                self.assertEqual(status["ended_by"], "too_few_workers")
                out = pathlib.Path(directory) / "model.safetensors"
                said = cluster.psctl("checkpoint", "export", str(checkpoints), "--out", str(out)).stdout
                self.assertIn(f"version {status['shards'][0]['version']}", said)
                self.assertTrue(out.exists())


if __name__ == "__main__":
    unittest.main()
