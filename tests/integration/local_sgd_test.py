"""Workers that take local steps: every mini-batch counts once, and under hardsync timing changes
nothing."""
import csv
import itertools
import pathlib
import statistics
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"
ALGORITHMS = ({"worker.algorithm": "local_sgd"},
              {"worker.algorithm": "easgd", "worker.push_every": 8},  # Keeps its weights.
              {"worker.algorithm": "diloco", "worker.fragments": 2, "worker.fragment_delay": 2,
               "worker.mixing": 0.5, "worker.outer.kind": "sgd",
               "worker.outer.learning_rate": 0.2})
SELDOM_FETCHING = {"worker.algorithm": "downpour", "worker.push_every": 8, "worker.fetch_every": 16}
THREADS = {"worker.algorithm": "local_sgd", "worker.threads": 3, "optimizer.kind": "sgd"}
# 100 mini-batches an epoch are not a multiple of the local steps.
SETTINGS = {"worker.algorithm": "local_sgd", "data.train_examples": 3200}


def batches_of(text):
    """Returns [8, 9, 10, 40] for "8-10;40"."""
    ranges = [[int(end) for end in one.split("-")] for one in text.split(";")]
    return [batch for ends in ranges for batch in range(ends[0], ends[-1] + 1)]


class LocalSgdTest(unittest.TestCase):
    def test_every_mini_batch_counts_once_and_status_says_what_the_log_says(self):
        runs = itertools.product(ALGORITHMS, ("hardsync", "async", "ssp"))
        others = ((SELDOM_FETCHING, "async"), (THREADS, "async"), (THREADS, "hardsync"))
        for algorithm, policy in itertools.chain(runs, others):
            with (self.subTest(algorithm=algorithm["worker.algorithm"], policy=policy),
                  cluster.scratch() as directory):
                settings = {**SETTINGS, **algorithm, "consistency.policy": policy,
                            "log.push_log": directory}
                with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                    status = live.wait_finished()
                logs = sorted(pathlib.Path(directory).glob("push-log-*.csv"))
                self.assertEqual(len(logs), 2)
                self.assertEqual(recompute_staleness.compare(logs, status), [])
                for log in logs:
                    with open(log, encoding="utf-8") as lines:
                        pushes = [batches_of(row["batch"]) for row in csv.DictReader(lines)
                                  if int(row["examples"]) > 0]
                    self.assertEqual(sorted(sum(pushes, [])), list(range(100)), log.name)
                    self.assertLess(len(pushes), 25, "a push stands for eight, but at the end")

    def test_what_is_refused_and_computed_again_loses_no_mini_batch(self):
        for algorithm in (ALGORITHMS[0], ALGORITHMS[2], SELDOM_FETCHING, THREADS):
            with self.subTest(algorithm=algorithm), cluster.scratch() as directory:
                settings = {**SETTINGS, **algorithm, "consistency.policy": "async",
                            "training.epochs": 4, "consistency.max_staleness.action": "reject",
                            "consistency.max_staleness.bound": 2, "log.push_log": directory}
                with cluster.Cluster(CONFIG, settings, directory, workers=4) as live:
                    status = live.wait_finished()
                self.assertGreater(int(status["guard"]["rejected"]), 0)
                done = set()
                for log in pathlib.Path(directory).glob("push-log-*.csv"):
                    with open(log, encoding="utf-8") as lines:
                        for row in csv.DictReader(lines):
                            if int(row["examples"]) > 0:
                                done.update(batches_of(row["batch"]))
                self.assertEqual(sorted(done), list(range(400)))

    def test_hardsync_gives_the_same_weights_whatever_the_timing_and_the_transport(self):
        for algorithm in ALGORITHMS:
            settings = {**SETTINGS, **algorithm, "consistency.policy": "hardsync",
                        "worker.outer.kind": "nesterov"}
            expected = cluster.run(CONFIG, settings)["weights_sha256"]
            for changed in ({"testing.push_delay_max": "20ms"}, {"wire.transport": "tcp"}):
                with self.subTest(algorithm=algorithm["worker.algorithm"], changed=changed):
                    again = cluster.run(CONFIG, {**settings, **changed})["weights_sha256"]
                    self.assertEqual(again, expected)

    def test_it_trains_by_its_name_alone_with_any_outer_rule(self):
        settings = {**SETTINGS, "data.train_examples": 12800, "training.epochs": 6}
        for kind in ("sgd", "momentum", "nesterov", "adam", "adamw", "lamb", "adagrad", "rmsprop",
                     "delayed_nesterov"):
            with self.subTest(outer=kind):
                done = cluster.run(CONFIG, {**settings, "worker.outer.kind": kind})
                print(f"outer {kind}: accuracy {done['test_accuracy']}")
                self.assertGreater(done["test_accuracy"], 0.5)

    def test_algorithms_on_local_steps_train_by_their_names_alone(self):
        settings = {**SETTINGS, "data.train_examples": 12800, "training.epochs": 6}
        # DiLoCo's momentum builds up stale deltas: it is published for workers that wait.
        for name, inner, policy in (("diloco", "adamw", "hardsync"), ("fedbuff", "sgd", "softsync"),
                                    ("downpour", "sgd", "softsync"), ("easgd", "sgd", "async"),
                                    ("eamsgd", "nesterov", "async")):
            with self.subTest(algorithm=name):
                # The file names a rule, and what a flag names is stronger.
                done = cluster.run(CONFIG, {**settings, "worker.algorithm": name,
                                            "optimizer.kind": inner,
                                            "consistency.policy": policy})
                print(f"{name}: accuracy {done['test_accuracy']}")
                self.assertGreater(done["test_accuracy"], 0.5)

    def test_threads_of_a_worker_train_the_same_weights(self):
        settings = {**SETTINGS, **THREADS, "data.train_examples": 12800, "training.epochs": 6}
        for more in ({}, {"worker.algorithm": "downpour"}, {"worker.algorithm": "easgd",
                                                            "consistency.policy": "async"}):
            with self.subTest(more=more):
                done = cluster.run(CONFIG, {**settings, **more})
                print(f"three threads, {more}: accuracy {done['test_accuracy']}")
                self.assertGreater(done["test_accuracy"], 0.5)

    def test_a_slow_worker_takes_fewer_steps_between_pushes_where_they_follow_speeds(self):
        settings = {**SETTINGS, "consistency.policy": "async", "worker.steps": 16,
                    "worker.steps_by_speed": "true", "training.epochs": 30,
                    "evaluation.every_epochs": 0,
                    "testing.workers": "[{delay: 4ms}, {delay: 4ms}, {delay: 4ms}, {delay: 20ms}]"}
        with cluster.scratch() as directory:
            with cluster.Cluster(CONFIG, {**settings, "log.push_log": directory}, directory,
                                 workers=4) as live:
                live.wait_finished()
            with open(pathlib.Path(directory) / "push-log-0.csv", encoding="utf-8") as lines:
                pushes = [(int(row["worker"]), batches_of(row["batch"]))
                          for row in csv.DictReader(lines) if int(row["examples"]) > 0]
        self.assertEqual(sorted(sum((batches for _, batches in pushes), [])), list(range(3000)))
        self.assertLessEqual(max(len(batches) for _, batches in pushes), 16)
        means = [statistics.mean(len(batches) for worker, batches in pushes if worker == one)
                 for one in range(4)]
        print(f"mini-batches of a push, by worker: {means}")
        *others, slow = means
        self.assertLess(slow, min(others))

    def test_the_death_of_a_worker_ends_nothing(self):
        for algorithm in ALGORITHMS:
            # A push stands for eight mini-batches, so the run needs more of them to last.
            status = cluster.outlive_one(CONFIG, {**algorithm, "consistency.policy": "async",
                                                  "training.epochs": 10})
            self.assertEqual(int(status["batches_done"]), int(status["batches_total"]))


if __name__ == "__main__":
    unittest.main()
