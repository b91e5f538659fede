"""Aggregators between workers and servers: every mini-batch counts once, whatever happens to them."""
import os
import pathlib
import random
import unittest

import cluster
import recompute_staleness

CONFIG = pathlib.Path(__file__).parent / "small_run.yaml"

# Four workers in two groups, before two servers.
TREE = {"cluster.tree.fanout": 2}
ALL = [(group, shard) for group in (0, 1) for shard in (0, 1)]
BATCHES = 200


class TreeTest(unittest.TestCase):
    def expect_all_counted(self, status, batches):
        self.assertEqual(int(status["batches_done"]), batches)
        self.assertEqual(int(status["pushes"]), batches)
        self.assertEqual(int(status["examples"]), 32 * batches)

    def finish(self, live):
        """Waits for the end of the run, and expects all workers to end well. Returns the status."""
        status = live.wait_finished()
        codes = [worker.wait(timeout=cluster.DEADLINE_S) for worker in live.workers.values()]
        self.assertEqual(codes, [0] * 4, live.log_texts())
        return status

    def run_hardsync(self, settings):
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, {**TREE, "consistency.policy": "hardsync", **settings},
                                directory, workers=4, aggregators=ALL) as live:
            status = self.finish(live)
        self.expect_all_counted(status, BATCHES)
        for shard in status["shards"]:
            self.assertEqual(int(shard["composite_parts"]), BATCHES)
            self.assertEqual(int(shard["composites"]), BATCHES // 2)
        self.assertEqual(len(status["aggregators"]), len(ALL))
        for aggregator in status["aggregators"]:
            self.assertEqual(int(aggregator["parts"]), BATCHES // 2)
        return status

    def test_hardsync_makes_the_same_weights_whoever_is_slow(self):
        status = self.run_hardsync({})
        slow = self.run_hardsync({"testing.push_delay_max": "20ms",
                                  "testing.workers": "[{}, {}, {delay: 20ms}]"})
        self.assertEqual(slow["weights_sha256"], status["weights_sha256"])

    def test_softsync_counts_each_batch_once_and_reports_the_staleness_of_its_parts(self):
        with cluster.scratch() as directory:
            settings = {**TREE, "log.push_log": directory}
            with cluster.Cluster(CONFIG, settings, directory, workers=4,
                                 aggregators=ALL) as live:
                status = self.finish(live)
            recompute_staleness.expect_each_batch_once(self, directory, status, BATCHES)
        self.expect_all_counted(status, BATCHES)
        for shard in status["shards"]:
            self.assertGreater(int(shard["composites"]), 0)
            self.assertGreater(int(shard["composite_parts"]), int(shard["composites"]))
            self.assertLessEqual(int(shard["composite_parts"]), BATCHES)

    def test_workers_with_free_lanes_follow_their_aggregators(self):
        with cluster.scratch() as directory:
            settings = {**TREE, "consistency.policy": "async", "worker.lanes": "free",
                        "log.push_log": directory}
            with cluster.Cluster(CONFIG, settings, directory, workers=4,
                                 aggregators=ALL) as live:
                status = self.finish(live)
            recompute_staleness.expect_each_batch_once(self, directory, status, BATCHES)
        self.expect_all_counted(status, BATCHES)
        for shard in status["shards"]:
            self.assertGreater(int(shard["composites"]), 0)

    def test_an_aggregator_that_is_killed_loses_and_repeats_nothing(self):
        batches = 2 * BATCHES
        for policy in ("async", "hardsync"):
            seed = int.from_bytes(os.urandom(4), "little")
            chance = random.Random(seed)
            killed = chance.choice(ALL)
            after = chance.randrange(1, batches // 2)
            print(f"{policy}, seed {seed}: kills {killed} after {after} mini-batches", flush=True)
            with self.subTest(policy=policy, seed=seed), cluster.scratch() as directory:
                settings = {**TREE, "consistency.policy": policy, "log.push_log": directory,
                            "data.train_examples": 32 * batches,
                            "testing.push_delay_max": "40ms"}
                with cluster.Cluster(CONFIG, settings, directory, workers=4,
                                     aggregators=ALL) as live:
                    live.wait_for(lambda status: int(status["batches_done"]) >= after,
                                  f"{after} mini-batches")
                    live.kill_aggregator(*killed)
                    status = self.finish(live)
                self.expect_all_counted(status, batches)
                recompute_staleness.expect_each_batch_once(self, directory, status, batches)

    def test_an_aggregator_that_comes_back_is_used_again(self):
        settings = {**TREE, "consistency.policy": "async", "cluster.lease": cluster.LEASE,
                    "training.epochs": 100000, "evaluation.every_epochs": 0}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=4, aggregators=ALL) as live:
            def parts(status):
                return sum(int(aggregator["parts"]) for aggregator in status["aggregators"]
                           if aggregator["group"] == 1 and aggregator["shard"] == 0)

            live.wait_for(lambda status: parts(status) > 0, "pushes to be combined")
            live.kill_aggregator(1, 0)
            old = parts(live.status())
            live.restart_aggregator(1, 0)
            live.wait_for(lambda status: parts(status) not in (0, old),
                          "pushes to be combined again")
            cluster.psctl("stop", "--coordinator", live.coordinator)
            self.finish(live)

    def test_the_start_timeout_names_an_aggregator_that_is_missing(self):
        settings = {**TREE, "cluster.start_timeout": "10s"}
        with cluster.scratch() as directory, \
                cluster.Cluster(CONFIG, settings, directory, workers=0,
                                aggregators=[(0, 0), (0, 1), (1, 1)]) as live:
            with self.assertRaisesRegex(AssertionError, "aggregator of group 1 for shard 0"):
                live.wait_finished()

    def test_psctl_starts_aggregators_and_keeps_their_logs(self):
        with cluster.scratch() as directory:
            path = pathlib.Path(directory) / "run"
            summary = cluster.run(CONFIG, TREE, run_dir=path)
            for group, shard in ALL:
                self.assertTrue((path / "logs" / f"aggregator-{group}.{shard}.log").exists())
        self.assertEqual(summary["ended_by"], "epochs")

    def validate(self, settings):
        return cluster.psctl("validate", str(CONFIG), *cluster.overrides({**TREE, **settings}),
                             check=False)

    def test_validate_counts_aggregators_and_refuses_what_they_cannot_combine(self):
        done = self.validate({})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 (2 before each server)", done.stdout)
        for settings, reason in (
                ({"consistency.policy": "ssp"}, "hardsync, softsync or async"),
                ({"consistency.policy": "hogwild", "optimizer.kind": "sgd"},
                 "hardsync, softsync or async"),
                ({"worker.algorithm": "local_sgd"}, "; use gradient"),
                ({"optimizer.staleness_scaling": "delay_compensated"}, "; use none, per_gradient"),
                ({"cluster.tree.fanout": 1}, "at least 2"),
                ({"cluster.tree.fanout": 65}, "[0, 64]")):
            with self.subTest(settings=settings):
                refused = self.validate(settings)
                self.assertNotEqual(refused.returncode, 0)
                self.assertIn(reason, refused.stderr)


if __name__ == "__main__":
    unittest.main()
