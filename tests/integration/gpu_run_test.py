"""Whole runs whose workers compute on simulated GPUs; see tests/gpu/simulated."""
import pathlib
import unittest

import cluster

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
SETTINGS = {"compute.device": "cuda", "data.train_examples": 3200}
DIFFERENCE_MAX = 0.005  # How far two accuracies may differ.


class GpuRunTest(unittest.TestCase):
    def accuracy(self, settings):
        return cluster.run(CONFIG, {**SETTINGS, **settings})["test_accuracy"]

    def test_the_model_is_as_accurate_as_the_processors(self):
        for preset, workers in (("mlp", 1), ("lenet5", 2)):
            with self.subTest(preset):
                settings = {"model.preset": preset, "consistency.policy": "hardsync",
                            "cluster.workers": workers}
                ours = self.accuracy(settings)
                theirs = self.accuracy({**settings, "compute.device": "cpu"})
                self.assertLess(abs(ours - theirs), DIFFERENCE_MAX)

    def test_a_worker_of_several_gpus_learns_the_same(self):
        # Three GPUs cannot share mini-batches of 10 examples evenly, nor the last one of 2.
        settings = {"consistency.policy": "hardsync", "cluster.workers": 1,
                    "training.batch_size": 10, "data.train_examples": 1602}
        ours = self.accuracy({**settings, "compute.device": "cuda:2,0,1"})
        theirs = self.accuracy({**settings, "compute.device": "cpu"})
        self.assertLess(abs(ours - theirs), DIFFERENCE_MAX)

    def test_a_pipeline_of_two_trains_too(self):
        # Guessing gives 0.1; CPUs reach about 0.5.
        accuracy = self.accuracy({"consistency.policy": "async", "training.pipeline_depth": 2,
                                  "data.train_examples": 6400, "cluster.workers": 2,
                                  "optimizer.kind": "sgd", "optimizer.learning_rate": 0.05})
        self.assertGreater(accuracy, 0.3)

    def test_a_worker_whose_gpu_is_lost_ends_and_the_others_go_on(self):
        settings = {**SETTINGS, "consistency.policy": "hardsync", "cluster.lease": "2s",
                    "compute.device": "cuda:0"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=2) as live:
            live.worker_prefix = ("env", "SIMULATED_GPU_LOST_AFTER=500")
            for worker in (2, 3):
                live.start_worker(worker)
            status = live.wait_finished()

            codes = [live.workers[worker].wait(timeout=cluster.DEADLINE_S) for worker in range(4)]
            self.assertEqual(codes, [0, 0, 75, 75], live.log_texts())
            self.assertIn("unspecified launch failure", live.log_text("worker-2"))
            self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))
            self.assertIn("unspecified launch failure", live.log_text("server-0"), "it was told why")


if __name__ == "__main__":
    unittest.main()
