"""Workers that are killed and started again go on with the state that they have saved."""
import pathlib
import shutil
import unittest

import cluster
import safetensors_reader

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
WORKERS = 2
BATCHES = 600
# Delays make the run take a few seconds, in which workers save their state several times.
SETTINGS = {"consistency.policy": "async", "cluster.workers": WORKERS,
            "data.train_examples": 32 * BATCHES, "evaluation.every_epochs": 0,
            "testing.push_delay_max": "40ms", "worker.save_state.interval": "100ms"}
ELASTIC = {"worker.algorithm": "eamsgd", "worker.push_every": 2, "optimizer.kind": "nesterov",
           "optimizer.learning_rate": 0.02, "testing.push_delay_max": "80ms"}
CODEC = {"wire.push_codec": "topk"}


def state_file(directory, worker):
    """Returns the path of the worker's state; None before there is one."""
    return next((directory / "state").glob(f"*/worker-{worker}.safetensors"), None)


class WorkerStateTest(unittest.TestCase):
    def run_with_kill(self, settings, change=lambda path: None):
        """Kills worker 1 once both workers have saved a state, calls `change` with the path of its
        file, and starts it again. Returns what it had saved, and its log after the run."""
        with cluster.scratch() as scratch:
            directory = pathlib.Path(scratch)
            settings = {**SETTINGS, "worker.save_state.directory": directory / "state", **settings}
            with cluster.Cluster(CONFIG, settings, directory, workers=WORKERS) as live:
                cluster.wait_until(lambda: state_file(directory, 0) and state_file(directory, 1),
                                   "the workers' first states")
                live.kill_worker(1)
                path = state_file(directory, 1)
                saved = safetensors_reader.Model(path)
                change(path)
                live.start_worker(1)
                status = live.wait_finished()
                codes = [worker.wait(timeout=cluster.DEADLINE_S)
                         for worker in live.workers.values()]
                self.assertEqual(codes, [0] * WORKERS, live.log_texts())
                self.assertEqual(int(status["batches_done"]), BATCHES)
                return saved, live.log_text("worker-1")

    def test_a_worker_of_elastic_averaging_goes_on_with_its_weights_and_its_momentum(self):
        saved, log = self.run_with_kill(ELASTIC)
        self.assertEqual(sorted(saved.values), ["optimizer.0", "weights"])
        self.assertTrue(all(any(values) for values in saved.values.values()))
        # Every push stands for two steps, so a state between two pushes is of an even number.
        self.assertEqual(int(saved.metadata["steps"]) % 2, 0)
        self.assertIn(f"goes on with its saved state step={saved.metadata['steps']} incarnation=",
                      log)

    def test_a_worker_goes_on_with_the_errors_of_its_codec(self):
        saved, log = self.run_with_kill(CODEC)
        self.assertEqual(sorted(saved.values), ["error.slot-0.shard-0", "error.slot-0.shard-1"])
        self.assertTrue(all(any(values) for values in saved.values.values()))
        self.assertIn(f"goes on with its saved state step={saved.metadata['steps']} incarnation=",
                      log)

    def test_the_state_of_another_worker_is_refused_by_name(self):
        _, log = self.run_with_kill(
            CODEC, lambda path: shutil.copy(path.with_name("worker-0.safetensors"), path))
        self.assertIn("it is the state of worker 0, and this is worker 1", log)
        self.assertNotIn("goes on with its saved state", log)

    def test_a_state_that_cannot_be_saved_stops_no_training(self):
        with cluster.scratch() as scratch:
            directory = pathlib.Path(scratch)
            (directory / "state").write_text("a file where the directory should be")
            settings = {**SETTINGS, **CODEC, "worker.save_state.directory": directory / "state"}
            with cluster.Cluster(CONFIG, settings, directory, workers=WORKERS) as live:
                status = live.wait_finished()
                self.assertEqual(int(status["batches_done"]), BATCHES)
                self.assertEqual(live.log_text("worker-1").count("cannot save its state"), 1)


if __name__ == "__main__":
    unittest.main()
