"""What follows if workers are lost: cluster.on_worker_loss and cluster.min_workers."""
import pathlib
import signal
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 4
BATCHES = 400
SETTINGS = {"consistency.policy": "hardsync", "cluster.workers": WORKERS, "cluster.lease": cluster.LEASE,
            "data.train_examples": 32 * BATCHES, "evaluation.every_epochs": 0,
            "testing.push_delay_max": "20ms"}


# With these each shard has 24 MB, and workers do not share their memory with the servers.
LARGE_LAYERS = "[flatten, dense: {units: 3072}, relu, dense: {units: 3072}, relu, dense: {units: 10}]"
LARGE = {"wire.transport": "tcp", "data.train_examples": 32 * 60}


def start(directory, settings, config=CONFIG):
    return cluster.Cluster(config, {**SETTINGS, **settings}, directory, workers=WORKERS)


def large_config(directory):
    """Writes a configuration with a larger model. Returns its path."""
    model = f"input: [1, 28, 28], layers: {LARGE_LAYERS}"
    return cluster.write_config(directory, CONFIG.read_text().replace("preset: mlp", model))


def awaited(status):
    """Returns the ids of the workers in whose places others are awaited."""
    return status.get("missing", {}).get("workers", [])


def stands_still():
    """Returns a condition for a status: shard 0 has had the same version five times in a row."""
    seen = []

    def is_same(status):
        seen.append(int(status["shards"][0]["version"]))
        return len(seen) >= 5 and len(set(seen[-5:])) == 1

    return is_same


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
        self.expect_undisturbed({}, status)

    def test_a_worker_without_an_id_gets_the_place_that_is_empty(self):
        settings = {"cluster.servers": "localhost:7070"}
        status = self.run_with_loss(settings, 1, arguments=[])
        self.expect_undisturbed(settings, status)

    def test_what_the_last_push_brought_to_one_server_is_brought_to_the_other(self):
        settings = {**LARGE, "cluster.on_worker_loss": "wait"}
        with (cluster.scratch() as directory,
              start(directory, settings, large_config(directory)) as live):
            live.wait_for(lambda status: int(status["updates"]) >= 5, "some updates")
            # The pushes to this server do not fit the buffers on their way, and the other goes on
            # for a round at most.
            live.servers[1].send_signal(signal.SIGSTOP)
            live.wait_for(stands_still(), "the other server to wait for this one")
            live.kill_worker(2)
            live.servers[1].send_signal(signal.SIGCONT)
            live.wait_for(awaited, "the run to wait for another worker")
            live.start_worker(2)
            status = live.wait_finished()
        self.expect_undisturbed(LARGE, status, large_config)

    def expect_undisturbed(self, settings, status, config_in=lambda directory: CONFIG):
        """Expects that the run has ended as one of the same settings without a loss."""
        with (cluster.scratch() as directory,
              start(directory, settings, config_in(directory)) as live):
            undisturbed = live.wait_finished()
        for figure in ("updates", "weights_sha256"):
            self.assertEqual(status[figure], undisturbed[figure], figure)

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
                self.assertRegex(said, rf"versions? {status['shards'][0]['version']}\b")
                self.assertTrue(out.exists())


if __name__ == "__main__":
    unittest.main()
